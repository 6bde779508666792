#pragma once

/// Makes the scheme `tree` known to `holdfast::client`.
void register_tree();
