#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// Whether a store's address carries a password: `redis://user:password@host`.
[[nodiscard]] bool has_password(std::string_view address) noexcept;

/// Whether a text is a store's address, perhaps with a mistake in it, rather than the name of a lock:
/// `redis://:password@host`, `redis:password@host`, `quorum:redis://a redis://b`.
[[nodiscard]] bool looks_like_store(std::string_view text);

/// `text` with every one of `words` replaced that looks like a store's address and may hold a password.
[[nodiscard]] std::string without_addresses(std::string text, const std::vector<std::string>& words);

/// The address, or the quorum's addresses, without passwords: `redis://user@host`.
[[nodiscard]] std::string without_passwords(std::string_view address);

/// Overwrites passwords in the process's own argument vector, which every user of the host can read.
/// Somebody may have looked before, so the right place for a password is `HOLDFAST_STORE`.
void hide_passwords(int argc, char** argv) noexcept;

/// Overwrites the passwords in `HOLDFAST_STORE` and `HOLDFAST_REDIS_PASSWORD` that this process was
/// started with: the user's other processes can read them, the command among them. Call it when the
/// address has been copied, and before there are threads. `getenv` finds the second one as before.
void hide_password_in_environment();

}  // namespace holdfast::cli
