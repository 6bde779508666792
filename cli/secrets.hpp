#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

/// Whether a store's address carries a password: `redis://user:password@host`.
[[nodiscard]] bool has_password(std::string_view address) noexcept;

/// The address, or the quorum's addresses, without passwords: `redis://user@host`.
[[nodiscard]] std::string without_passwords(std::string_view address);

/// Overwrites passwords in the process's own argument vector, which every user of the host can read.
/// Too late for somebody who looks at the right moment; the right place is `HOLDFAST_STORE`.
void hide_passwords(int argc, char** argv) noexcept;

/// Overwrites the password in this process's own `HOLDFAST_STORE`, which the user's other processes can
/// read, the command among them. Call it when the address has been copied.
void hide_password_in_environment() noexcept;

}  // namespace holdfast::cli
