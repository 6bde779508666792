#include <core/joint_question.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

/// What one of several is told. Only one of them was in the way; the others were not granted either.
[[nodiscard]] engines::acquire_reply part_of(const engines::acquire_all_reply& whole,
                                             std::size_t index) {
    engines::acquire_reply reply;
    reply.result = whole.result;
    reply.error = whole.error;
    if (whole.result == engines::acquire_reply::outcome::granted) {
        reply.first_token = whole.grants.at(index).first_token;
        reply.token_count = whole.grants.at(index).token_count;
        reply.ttl = whole.grants.at(index).ttl;
    } else if (whole.busy == index) {
        reply.retry_after = whole.retry_after;
    }
    return reply;
}

}  // namespace

void joint_question::begin(lock_table& table, const std::vector<claim>& all, clock::time_point now) {
    calls_.reserve(all.size());
    kept_.reserve(all.size());
    for (const auto& one : all) {
        calls_.push_back(table.acquire(one, now));
    }
}

void joint_question::refuse(lock_table& table, clock::time_point now) {
    const auto asked_for = [this](waiter_id call) {
        return std::any_of(kept_.begin(), kept_.end(),
                           [&](const send_acquire& one) { return one.on_behalf_of == call; });
    };
    const auto refused = std::find_if_not(calls_.begin(), calls_.end(), asked_for);
    engines::acquire_all_reply busy;
    busy.result = engines::acquire_reply::outcome::busy;
    busy.busy = static_cast<std::size_t>(refused - calls_.begin());
    busy_ = busy.busy;
    answer(table, busy, now);
}

std::vector<engines::acquire_request> joint_question::requests() {
    std::vector<engines::acquire_request> result;
    result.reserve(kept_.size());
    for (auto& one : kept_) {
        result.push_back(std::move(one.request));
    }
    return result;
}

void joint_question::answer(lock_table& table, const engines::acquire_all_reply& reply,
                            clock::time_point now) {
    busy_ = reply.busy;
    for (std::size_t index = 0; index < kept_.size(); ++index) {
        table.on_acquire_reply(kept_[index].id, part_of(reply, index), now);
    }
}

void joint_question::cancel(lock_table& table, clock::time_point now) const {
    for (const auto call : calls_) {
        table.cancel(call, errc::cancelled, now);
    }
}

}  // namespace holdfast::core
