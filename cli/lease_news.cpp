#include "lease_news.hpp"

#include <fmt/format.h>

#include "duration.hpp"

namespace holdfast::cli {

void lease_news::on_event(const event& news) noexcept {
    {
        const std::lock_guard lock{guard_};
        if (news.kind == event_kind::release_unconfirmed) {
            unreleased_[news.name] = news.error;
            told_.notify_all();
        }
        // The marker of --once-per has events, too.
        if (news.name == name_ &&
            (news.kind == event_kind::acquired || news.kind == event_kind::renewed)) {
            renewed_at_ = clock::now();
            trouble_ = {};
        }
        if (news.name == name_ && news.kind == event_kind::renewal_failed) {
            trouble_ = news.error;
        }
    }
    // `shut_down` comes from this program itself, at its end. Of a name that is not that of a plain
    // lock `claim` asks as a reader or writer next, and the last answer is told by `run`.
    const bool other_kind =
        news.kind == event_kind::not_acquired && news.error.code == errc::wrong_kind;
    if (news.kind == event_kind::renewed || news.error.code == errc::shut_down || other_kind) {
        return;
    }
    out_.detail(fmt::format("\"{}\" {}{}{}", news.name, to_string(news.kind), news.error ? ": " : "",
                            news.error.detail));
}

failure lease_news::release_trouble(const std::string& name) const {
    const std::lock_guard lock{guard_};
    const auto found = unreleased_.find(name);
    return found == unreleased_.end() ? failure{} : found->second;
}

failure lease_news::next_release_trouble(const std::string& name) const {
    constexpr std::chrono::seconds moment{1};
    std::unique_lock lock{guard_};
    told_.wait_for(lock, moment, [&] { return unreleased_.contains(name); });
    lock.unlock();
    return release_trouble(name);
}

std::string lease_news::renewal_trouble() const {
    const std::lock_guard lock{guard_};
    const auto passed = std::chrono::round<std::chrono::milliseconds>(clock::now() - renewed_at_);
    return fmt::format(
        "it was last renewed {} ago: {}", format_duration(passed),
        trouble_ ? trouble_.detail : "the store did not answer, or this process was stopped");
}

}  // namespace holdfast::cli
