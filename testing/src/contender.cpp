#include <gtest/gtest.h>

#include <utility>

#include <holdfast/testing/answers.hpp>
#include <holdfast/testing/contender.hpp>
#include <holdfast/testing/eventually.hpp>

namespace holdfast::testing {

contender::contender(const std::string& address, const std::string& label, lock_kind locks)
    : identity_{engines::make_identity(label)},
      store_{engines::open(address, identity_)},
      owner_{identity_.client},
      locks_{locks},
      last_sequence_{identity_.client.sequence} {
    become_fresh_owner();
}

owner_id contender::become_fresh_owner() noexcept {
    owner_ = another_owner();
    return owner_;
}

owner_id contender::another_owner() noexcept {
    auto fresh = identity_.client;
    fresh.sequence = ++last_sequence_;
    return fresh;
}

lock_kind contender::kind_for(claim_mode mode) const noexcept {
    switch (mode) {
        case claim_mode::shared:
            return lock_kind::shared_mutex;
        case claim_mode::permit:
            return lock_kind::semaphore;
        case claim_mode::exclusive:
            break;
    }
    return locks_;
}

engines::acquire_reply contender::acquire(const std::string& name, const claim_terms& terms) {
    return store_.acquire({.name = name,
                           .mode = terms.mode,
                           .permits = terms.permits,
                           .limit = terms.limit,
                           .owner = terms.as.value_or(owner_),
                           .ttl = terms.ttl,
                           .token_count = terms.token_count,
                           .kind = kind_for(terms.mode),
                           .token_floor = terms.token_floor,
                           .converts = terms.converts});
}

engines::renew_reply contender::renew(const std::string& name, const renewal_terms& terms) {
    auto replies = store_.renew({{.name = name,
                                  .mode = terms.mode,
                                  .owner = terms.as.value_or(owner_),
                                  .ttl = terms.ttl,
                                  .kind = kind_for(terms.mode)}});
    if (replies.size() != 1) {
        ADD_FAILURE() << "a batch of one renewal got " << replies.size() << " answers";
        return {};
    }
    return std::move(replies.front());
}

engines::release_reply contender::release(const std::string& name, const release_terms& terms) {
    return store_.release({.name = name,
                           .mode = terms.mode,
                           .owner = terms.as.value_or(owner_),
                           .linger = terms.linger,
                           .kind = kind_for(terms.mode)});
}

engines::revoke_reply contender::revoke(const std::string& name, const owner_id& owner,
                                        fencing_token token, const std::string& reason) {
    return store_.revoke({.name = name,
                          .owner = owner,
                          .token = token,
                          .actor = identity_.card.label,
                          .reason = reason});
}

lock_info contender::inspect(const std::string& name) {
    auto reply = store_.inspect(name);
    EXPECT_TRUE(answered(reply));
    return std::move(reply.info);
}

engines::list_reply contender::list(const std::string& prefix) {
    auto reply = store_.list({.prefix = prefix, .from = {}});
    EXPECT_TRUE(answered(reply));
    return reply;
}

engines::latch_reply contender::read_latch(const std::string& name) {
    return store_.latch({.what = engines::latch_request::operation::read,
                         .name = name,
                         .count = 0,
                         .lifetime = {},
                         .request = another_owner()});
}

engines::latch_reply contender::set_latch(const std::string& name, std::uint32_t count,
                                          std::chrono::milliseconds lifetime) {
    return store_.latch({.what = engines::latch_request::operation::set,
                         .name = name,
                         .count = count,
                         .lifetime = lifetime,
                         .request = another_owner()});
}

engines::latch_reply contender::count_down(const std::string& name, std::uint32_t by) {
    return store_.latch({.what = engines::latch_request::operation::count_down,
                         .name = name,
                         .count = by,
                         .lifetime = {},
                         .request = another_owner()});
}

fencing_token contender::hold(const std::string& name, const claim_terms& terms) {
    const auto reply = acquire(name, terms);
    EXPECT_TRUE(granted(reply)) << "for " << identity_.card.label;
    return reply.first_token;
}

std::optional<clock::time_point> contender::acquire_eventually(const std::string& name,
                                                               const claim_terms& terms) {
    engines::acquire_reply last;
    const bool succeeded = eventually([&] {
        last = acquire(name, terms);
        return last.result != engines::acquire_reply::outcome::busy;
    });
    EXPECT_TRUE(succeeded && granted(last)) << granted(last).message();
    if (!granted(last)) {
        return std::nullopt;
    }
    return clock::now();
}

std::unique_ptr<engines::subscription> contender::watch(const std::string& name,
                                                        std::function<void()> hint) {
    return watch(name, locks_, std::move(hint));
}

std::unique_ptr<engines::subscription> contender::watch(const std::string& name, lock_kind kind,
                                                        std::function<void()> hint) {
    auto subscription = store_.raw().offers().watching->watch(name, kind, std::move(hint));
    EXPECT_TRUE(eventually([&] { return subscription->active(); })) << "notifications never flowed";
    return subscription;
}

}  // namespace holdfast::testing
