#pragma once

#include <span>
#include <string>
#include <string_view>

namespace holdfast::engines::redis {

/// A Lua script as the server gets it. What it does, takes and answers is said in scripts/<name>.lua.
struct script {
    std::string_view name;
    std::string_view text;
    /// What EVALSHA calls it: the SHA-1 of the text in 40 hexadecimal digits.
    std::string sha;
};

[[nodiscard]] script make_script(std::string_view name, std::string_view text);

namespace scripts {

[[nodiscard]] const script& lock_acquire();
[[nodiscard]] const script& lock_acquire_all();
[[nodiscard]] const script& lock_release();
[[nodiscard]] const script& lock_renew();
[[nodiscard]] const script& fair_acquire();
[[nodiscard]] const script& fair_release();
[[nodiscard]] const script& read_acquire();
[[nodiscard]] const script& read_renew();
[[nodiscard]] const script& write_acquire();
[[nodiscard]] const script& read_write_release();
[[nodiscard]] const script& permit_acquire();
[[nodiscard]] const script& permit_release();
[[nodiscard]] const script& permit_renew();
[[nodiscard]] const script& moving_extend();
[[nodiscard]] const script& moving_release();
[[nodiscard]] const script& moving_permits();
[[nodiscard]] const script& latch();
[[nodiscard]] const script& revoke();
[[nodiscard]] const script& inspect();

[[nodiscard]] std::span<const script> all();

}  // namespace scripts
}  // namespace holdfast::engines::redis
