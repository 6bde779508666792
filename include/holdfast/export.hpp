#pragma once

/// Everything else in the shared libraries is hidden. `tests/consumer/exports` lists what is marked.
#define HOLDFAST_EXPORT [[gnu::visibility("default")]]
