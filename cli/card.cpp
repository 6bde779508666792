#include "card.hpp"

#include <fmt/format.h>

#include "duration.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

[[nodiscard]] std::string line(std::string_view key, std::string_view value) {
    return fmt::format("  {:<10}{}\n", key, printable(value));
}

[[nodiscard]] std::string format_state(const lock_info& lock) {
    if (lock.holders.empty()) {
        return describe_unheld(lock);
    }
    if (lock.limit > 0) {
        std::uint32_t taken = 0;
        for (const auto& holder : lock.holders) {
            taken += holder.permits;
        }
        return fmt::format("{} of {} permits taken", taken, lock.limit);
    }
    const auto count = lock.holders.size();
    return count == 1 ? "held" : fmt::format("shared by {} holders", count);
}

[[nodiscard]] std::string format_revocation(const revocation_info& revocation,
                                            system_clock::time_point now) {
    auto text = fmt::format("{} by {}, from owner {} with token {}", format_time(revocation.at, now),
                            revocation.actor, revocation.owner.text(), revocation.token.value);
    return revocation.reason.empty() ? text : fmt::format("{}: {}", text, revocation.reason);
}

/// What keeps a `--once-per` command from running; empty when nothing does.
[[nodiscard]] std::string format_earlier_run(const earlier_run& earlier, system_clock::time_point now) {
    if (!earlier.problem.empty()) {
        return fmt::format("unknown: {}", earlier.problem);
    }
    if (!earlier.marker) {
        return {};
    }
    const auto& marker = *earlier.marker;
    return fmt::format("not again before {} (in {}) unless --again is given; last run by {}",
                       format_time(now + marker.remaining, now), format_duration(marker.remaining),
                       describe_holder(marker));
}

}  // namespace

std::string format_card(const lock_info& lock, const holder_info& holder,
                        system_clock::time_point now) {
    auto since = format_since(holder, now);
    if (holder.since != system_clock::time_point{}) {
        const auto held_for = std::chrono::duration_cast<milliseconds>(now - holder.since);
        since += fmt::format(", for {}", format_duration(held_for));
    }
    std::string text;
    text += line("holder", describe_holder(holder));
    text += line("mode", format_mode(holder, lock));
    text += line("since", since);
    text += line("ttl left", format_duration(holder.remaining));
    text += line("token", format_tokens(holder));
    text += line("owner", holder.owner.text());
    text += line("process", format_status(holder));
    return text;
}

std::string format_takeover(const holder_info& holder, const engines::guarantees& promises) {
    if (holder.remaining == milliseconds::max()) {
        return "never by itself; `holdfast release --force` takes it away";
    }
    const auto rest = format_duration(holder.remaining);
    if (holder.lingering) {
        return fmt::format("in {}: it is kept on purpose until then", rest);
    }
    if (promises.notices_dead_holders && holder.process != liveness::unknown) {
        return fmt::format("at once if the holder dies, within {} if it hangs", rest);
    }
    return fmt::format("within {} if the holder dies or hangs", rest);
}

std::string format_lock(const lock_info& lock, const earlier_run& earlier, const client& store,
                        system_clock::time_point now) {
    auto page = fmt::format("{}\n", printable(lock.name));
    page += line("state", format_state(lock));
    page += line("store", fmt::format("{}, {}", store.store(), store.promises().reach_text));
    if (lock.waiters) {
        page += line("waiters", fmt::format("{}", *lock.waiters));
    }
    if (const auto text = format_earlier_run(earlier, now); !text.empty()) {
        page += line("once-per", text);
    }
    if (lock.last_revocation) {
        page += line("revoked", format_revocation(*lock.last_revocation, now));
    }
    for (const auto& holder : lock.holders) {
        page += "\n" + format_card(lock, holder, now);
        page += line("takeover", format_takeover(holder, store.promises()));
    }
    return page;
}

}  // namespace holdfast::cli
