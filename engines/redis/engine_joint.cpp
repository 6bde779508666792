#include <redis/engine.hpp>

#include <common/validate.hpp>
#include <redis/layout/keys.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::engines::redis {

/// One server alone has every name; of a cluster, those that share a slot are on one server, and may be
/// used by one script.
bool redis_engine::acquires_together(const std::vector<std::string>& names) const {
    if (names.empty() || !dialect_.clustered) {
        return !names.empty();
    }
    const auto slot = slot_for(dialect_.key_of(names.front()));
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        return slot_for(dialect_.key_of(name)) == slot && !check_key(name, lock_kind::mutex);
    });
}

void redis_engine::acquire_all(std::vector<acquire_request> all, call how,
                               completion<acquire_all_reply> done) {
    failure wrong;
    std::vector<std::string> keys;
    std::chrono::milliseconds longest{};
    for (const auto& one : all) {
        if (!wrong) {
            wrong = check_request(one, promises_);
        }
        if (!wrong) {
            wrong = check_key(one.name, one.kind);
        }
        keys.push_back(dialect_.key_of(one.name));
        longest = std::max(longest, one.ttl);
    }
    if (!wrong && clock::now() >= how.deadline) {
        wrong = {errc::store_unavailable, "the deadline had passed before anything was sent"};
    }
    if (wrong) {
        acquire_all_reply refusal;
        refusal.error = std::move(wrong);
        done(std::move(refusal));
        return;
    }
    write_card(longest);
    listen_for_revocations();
    run(acquire_all_call(all, keys, dialect_), slot_for(keys.front()), how,
        [count = all.size(), done = std::move(done)](connection::result result) {
            acquire_all_reply reply;
            if (result.error) {
                reply.error = std::move(result.error);
            } else {
                reply = acquire_all_answer(result.replies.front(), count);
            }
            done(std::move(reply));
        });
}

}  // namespace holdfast::engines::redis
