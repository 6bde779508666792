#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/info.hpp>
#include <redis/resp/value.hpp>

/// What the user of a store must be allowed, and how to find out. docs/redis.md has the same list as an
/// ACL line; a test compares them.
namespace holdfast::engines::redis {

struct permission {
    /// As ACLs write it: "hset", "client|kill".
    std::string_view name;
    /// A command that changes nothing, with `$key` and `$channel` in the places of the trial's own.
    /// Empty: tried elsewhere, or never refused.
    std::string_view trial{};
    enum class part : std::uint8_t {
        always,
        /// Could make a key that stays, if the trial's own key were not there.
        writes,
        clustered,
        sharded,
    } needed{part::always};
};

[[nodiscard]] std::span<const permission> permissions() noexcept;

/// A trial of all permissions at one server. Does no I/O.
///
/// First `opening`: makes a key that nobody else uses, holds a text and ends by itself, so that
/// commands for other types change nothing. Then `commands`, as far as that worked.
class permission_trial {
public:
    using command = std::vector<std::string>;

    /// `tag` is empty, or `:{n}` for the trial's keys and channels to be in the server's slot.
    permission_trial(std::string user, const std::string& tag, bool clustered, bool sharded);

    [[nodiscard]] std::vector<command> opening() const;
    /// `replies` are those to `opening`.
    [[nodiscard]] std::vector<command> commands(std::span<const value> replies);
    /// What the replies to `commands` say.
    [[nodiscard]] std::vector<finding> findings(std::span<const value> replies);

private:
    /// A reply to a command that was refused a key or a channel says that the user lacks `pattern`.
    struct trial {
        std::string_view name;
        std::string_view pattern;
    };

    void plan(const trial& tried, command words);
    void plan_subscription(const value& unsubscribed, std::string_view on, std::string_view off);
    void judge(const trial& tried, const value& reply);
    void note_refused_write(const value& reply);

    std::string user_;
    std::string key_;
    /// Of Redisson's layout; never exists.
    std::string line_key_;
    std::string lock_channel_;
    std::string own_channel_;
    bool clustered_;
    bool sharded_;
    /// What each command tries; the name is empty for one that tries no command.
    std::vector<trial> planned_{};
    std::vector<command> commands_{};
    std::vector<std::string> missing_{};
    std::vector<std::string> untried_{};
    /// Why the server grants no lock, whoever asks.
    std::string refused_write_{};
    /// Patterns of keys and channels.
    std::set<std::string_view> no_access_{};
};

}  // namespace holdfast::engines::redis
