#include <runtime/queries.hpp>

#include <holdfast/detail/deadline.hpp>
#include <runtime/fork_guard.hpp>
#include <runtime/safety_recheck.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::detail {

namespace {

[[nodiscard]] failure belongs_to_parent() {
    return {errc::forked, "it belongs to the parent process; make a new one in the child"};
}

[[nodiscard]] failure nothing_to_see() {
    return {errc::guarantee_not_met, "this store cannot say who holds a lock"};
}

[[nodiscard]] failure latch_is_gone() {
    return {errc::lost,
            "it counted, and is gone without having opened: its lifetime ended, or the store lost its "
            "data; set it again, with a lifetime that is longer than the longest wait"};
}

/// Something that may happen, and a thread that waits for it.
class occurrence {
public:
    void happen() {
        {
            const std::lock_guard lock{guard_};
            ++count_;
        }
        changed_.notify_all();
    }

    /// Waits until it has happened more often than `seen`, the deadline, or a stop of either kind.
    void wait(std::uint64_t& seen, clock::time_point deadline, const std::stop_token& stop,
              const std::stop_token& closing) {
        const std::stop_callback wake{stop, [this] { happen(); }};
        const std::stop_callback end{closing, [this] { happen(); }};
        std::unique_lock lock{guard_};
        const auto news = [&] { return count_ > seen; };
        const auto until = std::chrono::steady_clock::now() + (deadline - clock::now());
        changed_.wait_until(lock, until, news);
        seen = count_;
    }

private:
    std::mutex guard_;
    std::condition_variable changed_;
    std::uint64_t count_{};
};

}  // namespace

queries::queries(store_access& store, const settings& options) noexcept
    : store_{store}, settings_{options}, generation_{fork_generation()} {}

/// How long one question may take, and what ends the waiting for its answer before that.
struct queries::query_limits {
    clock::time_point deadline;
    std::stop_token stop{};
};

/// Asks the store and waits for its answer; the engine answers by the deadline. A caller that is
/// stopped leaves at once (`errc::cancelled`); the answer is then dropped. The answer is `otherwise`
/// where the engine lacks the ability.
template <class Reply, class Ability, class Start>
Reply queries::ask(Ability* ability, const failure& otherwise, const query_limits& limits,
                   const Start& start) {
    struct answer {
        std::atomic<bool> over{false};
        /// Who decides how it ended: the answer, or the stop.
        std::atomic<bool> decided{false};
        Reply reply;

        void put(Reply reply_or_refusal) {
            if (!decided.exchange(true)) {
                reply = std::move(reply_or_refusal);
                over.store(true, std::memory_order_release);
                over.notify_all();
            }
        }
    };
    Reply refused;
    if (generation_ != fork_generation()) {
        refused.error = belongs_to_parent();
        return refused;
    }
    if (ability == nullptr) {
        refused.error = otherwise;
        return refused;
    }
    const auto mine = std::make_shared<answer>();
    {
        const store_access::use in_use{store_};
        if (!in_use) {
            refused.error = shut_down_already();
            return refused;
        }
        store_.count_request();
        // A thread that may leave must not be inside the engine: see `call::may_leave`.
        const auto from =
            limits.stop.stop_possible() ? engines::caller::must_not_block : engines::caller::may_block;
        start(*ability, engines::call{limits.deadline, from},
              [mine](Reply reply) { mine->put(std::move(reply)); });
    }
    const std::stop_callback leave{limits.stop, [&] {
                                       Reply stopped;
                                       stopped.error = {errc::cancelled, "the caller stopped waiting"};
                                       mine->put(std::move(stopped));
                                   }};
    mine->over.wait(false, std::memory_order_acquire);
    return std::move(mine->reply);
}

engines::examine_reply queries::examine() {
    return ask<engines::examine_reply>(store_.offers().examination, {},
                                       {deadline_after(settings_.request_timeout)},
                                       [](engines::examination& store, engines::call how, auto done) {
                                           store.examine(how, std::move(done));
                                       });
}

engines::inspect_reply queries::inspect(const std::string& name,
                                        std::optional<std::chrono::milliseconds> timeout) {
    return ask<engines::inspect_reply>(store_.offers().operators, nothing_to_see(),
                                       {deadline_after(timeout.value_or(settings_.request_timeout))},
                                       [&](engines::operators_view& store, engines::call how,
                                           auto done) { store.inspect(name, how, std::move(done)); });
}

engines::list_reply queries::list(const engines::list_request& request,
                                  std::optional<std::chrono::milliseconds> timeout) {
    return ask<engines::list_reply>(store_.offers().operators, nothing_to_see(),
                                    {deadline_after(timeout.value_or(settings_.request_timeout))},
                                    [&](engines::operators_view& store, engines::call how, auto done) {
                                        store.list(request, how, std::move(done));
                                    });
}

engines::revoke_reply queries::revoke(const engines::revoke_request& request) {
    return ask<engines::revoke_reply>(store_.offers().operators, nothing_to_see(),
                                      {deadline_after(settings_.request_timeout)},
                                      [&](engines::operators_view& store, engines::call how,
                                          auto done) { store.revoke(request, how, std::move(done)); });
}

engines::latch_reply queries::latch(engines::latch_request request) {
    return latch(std::move(request), {deadline_after(settings_.request_timeout)});
}

engines::latch_reply queries::latch(engines::latch_request request, const query_limits& limits) {
    request.request = settings_.client;
    request.request.sequence = ++last_latch_request_;
    while (true) {
        auto reply = ask<engines::latch_reply>(
            store_.offers().latches, {errc::guarantee_not_met, "this store has no latches"}, limits,
            [&](engines::latches& store, engines::call how, auto done) {
                store.latch(request, how, std::move(done));
            });
        // The same request id, so it counts once however often it arrives.
        if (reply.error.code != errc::outcome_unknown || clock::now() >= limits.deadline) {
            return reply;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

failure queries::wait_for_latch(const std::string& name, clock::time_point deadline,
                                const std::stop_token& stop,
                                std::optional<engines::latch_life> seen_counting) {
    const auto opened = std::make_shared<occurrence>();
    std::unique_ptr<engines::subscription> watch;
    std::uint64_t seen = 0;
    auto patience_ends = deadline_after(settings_.outage_patience);
    // One token for both reasons to leave while a request is under way.
    std::stop_source leaving;
    const std::stop_callback on_stop{stop, [&] { leaving.request_stop(); }};
    const std::stop_callback on_close{closing_.get_token(), [&] { leaving.request_stop(); }};
    // A call may overrun its deadline by this much rather than be cut off while the answer is coming.
    // One without any time to wait asks once, like `try_wait`.
    constexpr std::chrono::milliseconds least{50};
    const bool asks_once = deadline <= clock::now();
    while (true) {
        auto answer_by = deadline_after(settings_.request_timeout);
        if (!asks_once) {
            answer_by =
                std::min(answer_by, std::max<clock::time_point>(deadline, clock::now() + least));
        }
        const auto reply = latch({engines::latch_request::operation::read, name, 0, {}, {}},
                                 {answer_by, leaving.get_token()});
        const bool passing =
            reply.error.code == errc::store_unavailable || reply.error.code == errc::outcome_unknown;
        if (!reply.error) {
            patience_ends = deadline_after(settings_.outage_patience);
        } else if (reply.error.code == errc::cancelled) {
            return stop.stop_requested() ? reply.error : shut_down_already();
        } else if (!passing || clock::now() >= std::min(patience_ends, deadline)) {
            return reply.error;
        }
        if (!reply.error && seen_counting && reply.life.line == seen_counting->line &&
            reply.life.openings > seen_counting->openings) {
            return {};  // whoever counts under this name now, and in whatever program
        }
        if (!reply.error && reply.count == 0) {
            return reply.known || !seen_counting ? failure{} : latch_is_gone();
        }
        if (!reply.error && reply.known && seen_counting && reply.life != *seen_counting) {
            return reply.life.line == seen_counting->line ? failure{} : latch_is_gone();
        }
        if (!reply.error && reply.known) {
            seen_counting = reply.life;
        }
        if (closing_.stop_requested()) {
            return shut_down_already();
        }
        if (stop.stop_requested()) {
            return {errc::cancelled, "the caller stopped waiting"};
        }
        if (clock::now() >= deadline) {
            return {errc::busy, "it did not open in time"};
        }
        if (!watch && store_.offers().watching != nullptr) {
            const store_access::use in_use{store_};
            if (!in_use) {
                return shut_down_already();
            }
            watch =
                store_.offers().watching->watch(name, lock_kind::latch, [opened] { opened->happen(); });
            // Looked at: if notifications do not flow yet, a hint follows once they do.
            static_cast<void>(watch->active());
            continue;  // what happened before the watch was not seen
        }
        // Woken by the latch; once a second in case a notification was lost, sooner while the store is
        // away or tells nobody.
        const auto pause = passing || !watch ? std::chrono::milliseconds{100} : safety_recheck.load();
        opened->wait(seen, std::min<clock::time_point>(deadline, clock::now() + pause), stop,
                     closing_.get_token());
    }
}

}  // namespace holdfast::detail
