#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

/// Whether a store's address carries a password: `redis://user:password@host`.
[[nodiscard]] bool has_password(std::string_view address) noexcept;

/// Overwrites passwords in the process's own argument vector, which every user of the host can read.
/// Too late for somebody who looks at the right moment; the right place is `HOLDFAST_STORE`.
void hide_passwords(int argc, char** argv) noexcept;

}  // namespace holdfast::cli
