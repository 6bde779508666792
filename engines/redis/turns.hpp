#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace holdfast::engines::redis {

/// The turns of others, as far as a client knows: of Redisson's clients that wait for a lock or a
/// permit. While it is their turn, a free lock is theirs alone: the scripts do not give it to our
/// clients. A number with zeros ahead of it on the lock's channel may announce such a turn, and its
/// length is the turn's number. A number without is a release by the others: it ends the turn.
///
///     none ── zeros, refused ──▶ theirs ── number ──▶ over
///                                  ▲                   │
///                                  └── zeros, refused because of another ─┘
///
/// Thread safety: all functions may be called from any thread.
class turns {
public:
    /// From now on, and until `forget`, turns at this lock are kept in mind.
    void watch(const std::string& key);
    void forget(const std::string& key);

    /// A message came on the lock's channel.
    void heard(const std::string& key, std::string_view message);
    /// The store refused us because of this turn.
    void refused(const std::string& key, int number);
    /// For the next question: the number of the last turn, if it is known to be over; 0 otherwise.
    [[nodiscard]] int claim(const std::string& key) const;

private:
    struct turn {
        int number{};
        bool over{};
    };

    mutable std::mutex guard_;
    std::map<std::string, turn, std::less<>> watched_;
};

}  // namespace holdfast::engines::redis
