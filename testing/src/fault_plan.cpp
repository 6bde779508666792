#include "fault_plan_state.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::testing {

namespace {

std::size_t index_of(call_kind kind) {
    return static_cast<std::size_t>(kind);
}

}  // namespace

fault_plan::state::state() : deadlines_{[this] { watch_deadlines(); }} {}

fault_plan::state::~state() {
    {
        const std::lock_guard lock{guard};
        stopping_ = true;
        changed.notify_all();
    }
    deadlines_.join();
}

void fault_plan::state::add(call_kind kind, script next) {
    const std::lock_guard lock{guard};
    if (next.remaining != 0) {
        scripts[index_of(kind)].push_back(std::move(next));
    }
}

std::size_t fault_plan::state::deliverable() const {
    const auto count = std::count_if(kept.begin(), kept.end(),
                                     [](const kept_call& call) { return bool{call.deliver}; });
    return static_cast<std::size_t>(count);
}

verdict fault_plan::state::judge(call_kind kind) {
    const std::lock_guard lock{guard};
    ++calls[index_of(kind)];
    changed.notify_all();
    switch (connection) {
        case link::up:
            break;
        case link::cut_off:
            return {verdict::fate::fail, {errc::store_unavailable, "cut off by the fault plan"}};
        case link::silent:
            return {verdict::fate::no_answer, {}};
    }
    auto& waiting = scripts[index_of(kind)];
    if (waiting.empty()) {
        return {};
    }
    verdict result{waiting.front().fault, waiting.front().error};
    if (--waiting.front().remaining == 0) {
        waiting.pop_front();
    }
    return result;
}

void fault_plan::state::keep(kept_call call) {
    std::unique_lock lock{guard};
    if (!call.member->closed) {
        kept.push_back(std::move(call));
        changed.notify_all();
        return;
    }
    lock.unlock();
    call.deliver ? call.deliver() : call.give_up({errc::shut_down, "the engine is gone"});
}

void fault_plan::state::let_go() {
    std::unique_lock lock{guard};
    // Calls that are kept while we deliver wait for the next `let_go`.
    std::list<kept_call> going;
    for (auto call = kept.begin(); call != kept.end();) {
        const auto next = std::next(call);
        if (call->deliver) {
            going.splice(going.end(), kept, call);
        }
        call = next;
    }
    for (const auto& call : going) {
        ++call.member->running;
    }
    for (auto& call : going) {
        lock.unlock();
        call.deliver();
        lock.lock();
        --call.member->running;
        changed.notify_all();
    }
}

void fault_plan::state::heal() {
    std::unique_lock lock{guard};
    if (std::exchange(connection, link::up) == link::up) {
        return;
    }
    const auto everybody = members;
    for (const auto& one : everybody) {
        if (const auto member = one.lock(); member && !member->closed) {
            run(lock, *member, member->hint_everybody);
        }
    }
}

void fault_plan::state::join(std::shared_ptr<plan_member> member) {
    const std::lock_guard lock{guard};
    std::erase_if(members, [](const auto& one) { return one.expired(); });
    members.push_back(member);
}

void fault_plan::state::close(const std::shared_ptr<plan_member>& member) {
    std::unique_lock lock{guard};
    member->closed = true;
    std::list<kept_call> ending;
    for (auto call = kept.begin(); call != kept.end();) {
        const auto next = std::next(call);
        if (call->member == member) {
            ending.splice(ending.end(), kept, call);
        }
        call = next;
    }
    lock.unlock();
    for (const auto& call : ending) {
        if (!call.caller_is_gone) {
            call.give_up({errc::shut_down, "the client was shut down before the store answered"});
        }
    }
    lock.lock();
    changed.wait(lock, [&] { return member->running == 0; });
}

bool fault_plan::state::notifications_flow() {
    const std::lock_guard lock{guard};
    return connection == link::up && !hints_are_dropped;
}

bool fault_plan::state::connected() {
    const std::lock_guard lock{guard};
    return connection == link::up;
}

void fault_plan::state::run(std::unique_lock<std::mutex>& lock, plan_member& member,
                            const std::function<void()>& callback) {
    ++member.running;
    lock.unlock();
    callback();
    lock.lock();
    --member.running;
    changed.notify_all();
}

void fault_plan::state::end_overdue_calls() {
    std::unique_lock lock{guard};
    const auto now = clock::now();
    const auto is_overdue = [now](const kept_call& call) {
        return !call.caller_is_gone && call.deadline <= now;
    };
    for (auto call = std::find_if(kept.begin(), kept.end(), is_overdue); call != kept.end();
         call = std::find_if(kept.begin(), kept.end(), is_overdue)) {
        call->caller_is_gone = true;
        const auto member = call->member;
        const auto give_up = call->give_up;
        if (!call->outlives_its_caller) {
            kept.erase(call);
        }
        run(lock, *member, [&] { give_up({errc::outcome_unknown, "no answer by the deadline"}); });
    }
}

void fault_plan::state::watch_deadlines() {
    constexpr std::chrono::hours longest_nap{1};
    while (true) {
        end_overdue_calls();
        std::unique_lock lock{guard};
        if (stopping_) {
            return;
        }
        auto nap = std::chrono::duration_cast<clock::duration>(longest_nap);
        for (const auto& call : kept) {
            if (!call.caller_is_gone) {
                nap = std::min(nap, call.deadline - clock::now());
            }
        }
        if (nap > clock::duration::zero()) {
            changed.wait_for(lock, nap);
        }
    }
}

fault_plan::fault_plan() : state_{std::make_shared<state>()} {}

fault_plan::~fault_plan() = default;

void fault_plan::fail_next(call_kind kind, std::size_t count, failure error) {
    state_->add(kind, {verdict::fate::fail, count, std::move(error)});
}

void fault_plan::lose_replies_of_next(call_kind kind, std::size_t count) {
    state_->add(kind, {verdict::fate::lose_reply, count, {}});
}

void fault_plan::delay_replies_of_next(call_kind kind, std::size_t count) {
    state_->add(kind, {verdict::fate::delay_reply, count, {}});
}

void fault_plan::delay_next(call_kind kind, std::size_t count) {
    state_->add(kind, {verdict::fate::delay_request, count, {}});
}

void fault_plan::let_go() {
    state_->let_go();
}

std::size_t fault_plan::held() const {
    const std::lock_guard lock{state_->guard};
    return state_->deliverable();
}

bool fault_plan::wait_until_held(std::size_t count, std::chrono::milliseconds limit) const {
    std::unique_lock lock{state_->guard};
    return state_->changed.wait_for(lock, limit, [&] { return state_->deliverable() >= count; });
}

void fault_plan::keep_callers() {
    state_->callers_are_kept.store(true);
}

void fault_plan::drop_hints() {
    const std::lock_guard lock{state_->guard};
    state_->hints_are_dropped = true;
}

void fault_plan::deliver_hints() {
    const std::lock_guard lock{state_->guard};
    state_->hints_are_dropped = false;
}

void fault_plan::cut_off() {
    const std::lock_guard lock{state_->guard};
    state_->connection = state::link::cut_off;
}

void fault_plan::go_silent() {
    const std::lock_guard lock{state_->guard};
    state_->connection = state::link::silent;
}

void fault_plan::heal() {
    state_->heal();
}

std::size_t fault_plan::calls(call_kind kind) const {
    const std::lock_guard lock{state_->guard};
    return state_->calls[index_of(kind)];
}

bool fault_plan::wait_for_calls(call_kind kind, std::size_t count,
                                std::chrono::milliseconds limit) const {
    std::unique_lock lock{state_->guard};
    return state_->changed.wait_for(lock, limit,
                                    [&] { return state_->calls[index_of(kind)] >= count; });
}

}  // namespace holdfast::testing
