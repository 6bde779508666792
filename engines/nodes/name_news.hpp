#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nodes/outbox.hpp>

namespace holdfast::engines::nodes {

/// Watches the names that somebody wants to hear of.
///
/// A claim of ours can mute a name: a claim in line watches what matters to it, and a name that is ours
/// alone has no news.
///
/// Thread safety: none.
class name_news {
public:
    explicit name_news(outbox& outbox) : outbox_{outbox} {}

    /// How many watch the name from now on.
    void watchers(const std::string& name, std::uint32_t count);
    /// One more claim mutes the name, or one fewer.
    void mute(const std::string& name, bool more);
    /// False if this watch is not on a name.
    [[nodiscard]] bool on_changed(watch_id id);
    /// The name has no news until somebody else begins or ceases to watch it, which starts a new watch.
    void on_watch_failed(watch_id id);
    /// Whether those who watch the name hear news of it.
    [[nodiscard]] bool hears(const std::string& name) const;
    void end();

private:
    struct interest {
        std::uint32_t watchers{};
        /// Claims that mute the name.
        std::uint32_t muted{};
        watch_id watch{};
        bool hears{};
    };

    void update(const std::string& name, interest& entry);

    outbox& outbox_;
    std::map<std::string, interest> entries_;
    std::map<watch_id, std::string> watches_;
};

}  // namespace holdfast::engines::nodes
