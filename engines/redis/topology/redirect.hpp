#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/error.hpp>
#include <redis/net/settings.hpp>
#include <redis/resp/value.hpp>

/// How servers tell us to go elsewhere or to come later. Pure functions.
namespace holdfast::engines::redis {

struct redirect {
    enum class kind : std::uint8_t {
        moved,  ///< the slot belongs to another server now
        ask,    ///< the slot is on its way there: ask there this once
    } type{};
    std::uint16_t slot{};
    node_address server;
};

/// "MOVED 3999 10.0.0.5:6381", "ASK 3999 ::1:6381", "MOVED 3999 :6381" (the host that was asked).
/// Nothing for other answers, and when it does not say where.
[[nodiscard]] std::optional<redirect> read_redirect(const value& answer, const node_address& asked);

/// Why the server cannot do this now, if that is what it says: CLUSTERDOWN, LOADING, MASTERDOWN,
/// READONLY. Nothing was changed, then. (TRYAGAIN is an answer: another command may do.)
[[nodiscard]] failure not_now(const value& answer);

/// Copies commands, with ASKING before each: it holds for one command only. The first `left_out` of
/// them stay behind. How many answers they have; false if these are no commands.
[[nodiscard]] std::optional<std::size_t> append_with_asking(std::string& out, std::string_view commands,
                                                            std::size_t left_out = 0);
/// Takes the answers to ASKING out again. One that was refused is the answer to a command that the
/// server then sent elsewhere: back, for ever.
void drop_asking(std::vector<value>& replies);

}  // namespace holdfast::engines::redis
