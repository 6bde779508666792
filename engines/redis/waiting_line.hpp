#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <holdfast/engine.hpp>
#include <redis/translation.hpp>
#include <redis/watches.hpp>

namespace holdfast::engines::redis {

/// The grant in the message to an owner whose turn it is. `asked_at` is also the number of the
/// question.
[[nodiscard]] inline turn_grant grant_in(const turn_message& message) {
    return {message.first_token, message.token_count,
            clock::time_point{clock::duration{message.question}}};
}

/// Our owners that stand in line for fair locks, each with a channel of its own.
///
/// Thread safety: all functions may be called from any thread.
class waiting_line {
public:
    using turn_told = std::function<void(const owner_id& owner, const std::optional<turn_grant>&)>;

    /// From now on the owner listens to its channel, and `told` hears of its turn. Returns the number
    /// of its question.
    [[nodiscard]] std::int64_t enter(const owner_id& owner, watches& channels, channel_place channel,
                                     std::string key, turn_told told);
    /// The store has answered the question. `listened`: it knew that the owner listens. True: the owner
    /// may have missed its turn, because its channel began to flow after the server had looked and
    /// before we were told so.
    [[nodiscard]] bool on_reply(const owner_id& owner, const acquire_reply& reply, bool listened);
    void leave(const owner_id& owner);
    [[nodiscard]] bool contains(const owner_id& owner) const;
    void clear();

private:
    struct place {
        std::unique_ptr<watches::listening> channel;
        /// When its last request was made.
        clock::time_point asked_at;
        /// Its channel flows.
        bool began{};
        /// Whether the server knew that it listens when it answered its first question.
        std::optional<bool> listened{};
    };

    void heard(const owner_id& owner, const std::string& key, std::string_view message,
               const turn_told& told);
    [[nodiscard]] bool missed_nothing(const owner_id& owner);

    mutable std::mutex guard_;
    std::map<owner_id, place> places_;
};

}  // namespace holdfast::engines::redis
