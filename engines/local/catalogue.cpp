#include <algorithm>
#include <local/catalogue.hpp>
#include <map>
#include <optional>

namespace holdfast::engines::local {

namespace {

/// Looks at each process once per answer.
class attendance {
public:
    explicit attendance(const process_ref& observer) : observer_{observer} {}

    liveness of(const process_ref& process) {
        const auto [place, unknown] = seen_.try_emplace(process, liveness::unknown);
        if (unknown) {
            place->second = liveness_of(process, observer_);
        }
        return place->second;
    }

private:
    const process_ref& observer_;
    std::map<process_ref, liveness> seen_;
};

std::optional<holder_info> describe_hold(seen_hold&& seen, attendance& present, clock::time_point now) {
    const liveness process = present.of(seen.process);
    if (process == liveness::dead && !seen.hold.lingering) {
        return std::nullopt;
    }
    holder_info info = records::describe(seen.hold, now);
    info.card = std::move(seen.card);
    info.process = process;
    return info;
}

void sort_by_token(lock_info& info) {
    std::sort(
        info.holders.begin(), info.holders.end(),
        [](const holder_info& left, const holder_info& right) { return left.token < right.token; });
}

void add_circumstances(lock_info& info, store_connection& store, const wake_map& waiters) {
    sort_by_token(info);
    info.waiters = waiters.count_waiters(wake_map::key_of(info.name));
    info.last_revocation = store.last_revocation(info.name);
}

}  // namespace

lock_info describe_name(store_connection& store, wake_map& waiters, const process_ref& observer,
                        const std::string& name) {
    lock_info info;
    info.name = name;
    attendance present{observer};
    const auto now = clock::now();
    for (seen_hold& seen : store.holders(name)) {
        const std::uint32_t limit = seen.hold.limit;
        if (auto holder = describe_hold(std::move(seen), present, now)) {
            info.holders.push_back(*std::move(holder));
            info.limit = limit;
        }
    }
    waiters.forget_dead_waiters();
    add_circumstances(info, store, waiters);
    return info;
}

list_reply list_names(store_connection& store, wake_map& waiters, const process_ref& observer,
                      const list_request& request) {
    list_reply reply;
    attendance present{observer};
    const auto now = clock::now();
    // No name holds a zero byte: with one added, it is the first that comes after `from`.
    const std::string first = request.from >= request.prefix && !request.from.empty()
                                  ? request.from + std::string(1, '\0')
                                  : request.prefix;
    store.scan(first, request.prefix, [&](seen_hold&& seen) {
        std::string name = seen.name;
        const std::uint32_t limit = seen.hold.limit;
        auto holder = describe_hold(std::move(seen), present, now);
        if (!holder) {
            return true;
        }
        if (reply.locks.empty() || reply.locks.back().name != name) {
            if (reply.locks.size() == request.limit) {
                reply.next = reply.locks.back().name;
                return false;
            }
            reply.locks.emplace_back().name = std::move(name);
        }
        reply.locks.back().limit = limit;
        reply.locks.back().holders.push_back(*std::move(holder));
        return true;
    });
    waiters.forget_dead_waiters();
    for (lock_info& info : reply.locks) {
        add_circumstances(info, store, waiters);
    }
    return reply;
}

holders_of_name examine_holders(store_connection& store, const process_ref& observer,
                                const std::string& name) {
    holders_of_name found;
    attendance present{observer};
    for (const seen_hold& seen : store.holders(name)) {
        if (seen.hold.lingering) {
            continue;
        }
        if (present.of(seen.process) == liveness::dead) {
            found.dead.push_back(seen.hold.owner);
        } else {
            found.alive.push_back(seen.process);
        }
    }
    return found;
}

}  // namespace holdfast::engines::local
