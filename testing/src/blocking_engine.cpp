#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include <holdfast/testing/blocking_engine.hpp>

namespace holdfast::testing {

namespace {

using engines::call;
using engines::completion;

constexpr std::chrono::seconds time_per_call{10};
constexpr std::chrono::seconds grace{5};

/// Where the answer of one call arrives. Shared with the completion, which may come too late.
template <class Reply>
class mailbox {
public:
    void put(Reply reply) {
        const std::lock_guard lock{guard_};
        if (arrived_) {
            ADD_FAILURE() << "the engine answered one call twice";
            return;
        }
        arrived_ = true;
        reply_ = std::move(reply);
        changed_.notify_all();
    }

    [[nodiscard]] std::optional<Reply> take(std::chrono::milliseconds limit) {
        std::unique_lock lock{guard_};
        changed_.wait_for(lock, limit, [this] { return arrived_; });
        return std::exchange(reply_, std::nullopt);
    }

private:
    std::mutex guard_;
    std::condition_variable changed_;
    bool arrived_{};
    std::optional<Reply> reply_;
};

template <class Reply>
Reply unanswered() {
    Reply reply{};
    reply.error = {errc::outcome_unknown, "no answer"};
    return reply;
}

template <>
std::vector<engines::renew_reply> unanswered() {
    return {};
}

template <class Reply, class Start>
Reply await(const char* request, const Start& start) {
    const auto box = std::make_shared<mailbox<Reply>>();
    start(completion<Reply>{[box](Reply reply) { box->put(std::move(reply)); }});
    if (auto reply = box->take(time_per_call + grace)) {
        return *std::move(reply);
    }
    ADD_FAILURE() << "the engine did not answer " << request << " within its deadline";
    return unanswered<Reply>();
}

/// Asks an ability, or answers like an engine without this ability.
template <class Reply, class Ability, class Start>
Reply await(Ability* ability, const char* request, const Start& start) {
    if (ability == nullptr) {
        Reply reply{};
        reply.error = {errc::guarantee_not_met, "this engine does not offer that"};
        return reply;
    }
    return await<Reply>(request, [&](auto done) { start(*ability, std::move(done)); });
}

}  // namespace

blocking_engine::blocking_engine(std::unique_ptr<engines::engine> inner, engines::caller from)
    : inner_{std::move(inner)}, from_{from} {}

call blocking_engine::now() const {
    return {.deadline = clock::now() + time_per_call, .from = from_};
}

engines::acquire_reply blocking_engine::acquire(engines::acquire_request request) {
    return await<engines::acquire_reply>(
        "acquire", [&](auto done) { inner_->acquire(std::move(request), now(), std::move(done)); });
}

engines::acquire_all_reply blocking_engine::acquire_all(std::vector<engines::acquire_request> all) {
    return await<engines::acquire_all_reply>(
        inner_->offers().joint_locking, "acquire_all",
        [&](auto& ability, auto done) { ability.acquire_all(std::move(all), now(), std::move(done)); });
}

std::vector<engines::renew_reply> blocking_engine::renew(std::vector<engines::renew_request> batch) {
    return await<std::vector<engines::renew_reply>>(
        "renew", [&](auto done) { inner_->renew(std::move(batch), now(), std::move(done)); });
}

engines::release_reply blocking_engine::release(engines::release_request request) {
    return await<engines::release_reply>(
        "release", [&](auto done) { inner_->release(std::move(request), now(), std::move(done)); });
}

engines::revoke_reply blocking_engine::revoke(engines::revoke_request request) {
    return await<engines::revoke_reply>(
        inner_->offers().operators, "revoke",
        [&](auto& ability, auto done) { ability.revoke(std::move(request), now(), std::move(done)); });
}

engines::inspect_reply blocking_engine::inspect(std::string name) {
    return await<engines::inspect_reply>(
        inner_->offers().operators, "inspect",
        [&](auto& ability, auto done) { ability.inspect(std::move(name), now(), std::move(done)); });
}

engines::list_reply blocking_engine::list(engines::list_request request) {
    return await<engines::list_reply>(
        inner_->offers().operators, "list",
        [&](auto& ability, auto done) { ability.list(std::move(request), now(), std::move(done)); });
}

engines::latch_reply blocking_engine::latch(engines::latch_request request) {
    return await<engines::latch_reply>(
        inner_->offers().latches, "latch",
        [&](auto& ability, auto done) { ability.latch(std::move(request), now(), std::move(done)); });
}

}  // namespace holdfast::testing
