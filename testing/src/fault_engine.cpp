#include <atomic>
#include <mutex>
#include <utility>

#include <holdfast/testing/fault_engine.hpp>

#include "fault_plan_state.hpp"

namespace holdfast::testing {

namespace {

using engines::call;
using engines::completion;

/// A completion that several may try to run; the first one does.
template <class Reply>
class once {
public:
    explicit once(completion<Reply> done) : done_{std::move(done)} {}

    void operator()(Reply reply) {
        if (!used_.exchange(true)) {
            done_(std::move(reply));
        }
    }

private:
    completion<Reply> done_;
    std::atomic<bool> used_{false};
};

/// One call, ready to be sent or to fail.
template <class Reply>
struct exchange {
    call_kind kind;
    call terms;
    completion<Reply> done;
    std::function<Reply(failure)> failed;
    std::function<void(call, completion<Reply>)> send;
};

template <class Reply>
Reply failed_reply(failure error) {
    Reply reply{};
    reply.error = std::move(error);
    return reply;
}

/// The hint of a watch, for as long as the watch is in place.
struct listener {
    std::function<void()> hint;
};

}  // namespace

/// The part that outlives the engine while callbacks are under way.
class fault_engine::wire : public std::enable_shared_from_this<wire> {
public:
    wire(std::unique_ptr<engines::engine> inner, std::shared_ptr<fault_plan> plan)
        : plan_{std::move(plan)}, inner_{std::move(inner)} {}

    void open() {
        member_->hint_everybody = [weak = weak_from_this()] {
            if (const auto self = weak.lock()) {
                self->hint_everybody();
            }
        };
        plan()->join(member_);
    }

    void close() {
        plan()->close(member_);
        inner_.reset();
    }

    [[nodiscard]] engines::engine& inner() const noexcept { return *inner_; }
    [[nodiscard]] const std::shared_ptr<fault_plan::state>& plan() const noexcept {
        return plan_->shared();
    }

    template <class Reply>
    void route(exchange<Reply> outgoing) {
        if (outgoing.terms.from != engines::caller::may_block || !plan()->callers_are_kept.load()) {
            pass(std::move(outgoing));
            return;
        }
        const auto over = std::make_shared<std::atomic<bool>>(false);
        outgoing.done = [over, done = std::move(outgoing.done)](Reply reply) {
            done(std::move(reply));
            over->store(true);
            over->notify_all();
        };
        pass(std::move(outgoing));
        over->wait(false);
    }

    template <class Reply>
    void pass(exchange<Reply> outgoing) {
        auto [fate, error] = plan()->judge(outgoing.kind);
        switch (fate) {
            case verdict::fate::pass:
                outgoing.send(outgoing.terms, std::move(outgoing.done));
                return;
            case verdict::fate::fail:
                outgoing.done(outgoing.failed(std::move(error)));
                return;
            case verdict::fate::lose_reply:
                lose_reply(std::move(outgoing));
                return;
            case verdict::fate::delay_reply:
                delay_reply(std::move(outgoing));
                return;
            case verdict::fate::delay_request:
                delay_request(std::move(outgoing));
                return;
            case verdict::fate::no_answer:
                leave_unanswered(std::move(outgoing));
                return;
        }
    }

    void attach(engines::client_callbacks callbacks) {
        {
            const std::lock_guard lock{guard_};
            callbacks_ = callbacks;
        }
        const auto flowing = [weak = weak_from_this()] {
            const auto self = weak.lock();
            return self && self->plan()->notifications_flow();
        };
        inner_->attach({.holds_may_have_changed =
                            [flowing, callbacks] {
                                if (flowing() && callbacks.holds_may_have_changed) {
                                    callbacks.holds_may_have_changed();
                                }
                            },
                        .turn_of =
                            [flowing, callbacks](const std::string& name, const owner_id& owner,
                                                 const std::optional<engines::turn_grant>& granted) {
                                if (flowing() && callbacks.turn_of) {
                                    callbacks.turn_of(name, owner, granted);
                                }
                            },
                        .degraded = callbacks.degraded});
    }

    std::shared_ptr<listener> listen(std::function<void()> hint) {
        auto added = std::make_shared<listener>(listener{std::move(hint)});
        const std::lock_guard lock{guard_};
        std::erase_if(listeners_, [](const auto& one) { return one.expired(); });
        listeners_.push_back(added);
        return added;
    }

private:
    template <class Reply>
    void lose_reply(exchange<Reply> outgoing) {
        outgoing.send(outgoing.terms, [done = std::move(outgoing.done),
                                       failed = std::move(outgoing.failed)](const Reply&) {
            done(failed({errc::outcome_unknown, "the answer was lost by the fault plan"}));
        });
    }

    template <class Reply>
    void delay_reply(exchange<Reply> outgoing) {
        auto done = std::make_shared<once<Reply>>(std::move(outgoing.done));
        outgoing.send(
            outgoing.terms, [self = shared_from_this(), done, failed = std::move(outgoing.failed),
                             deadline = outgoing.terms.deadline](Reply reply) {
                self->plan()->keep(
                    {.member = self->member_,
                     .deadline = deadline,
                     .give_up = [done, failed](failure error) { (*done)(failed(std::move(error))); },
                     .deliver = [done, reply = std::move(reply)] { (*done)(reply); }});
            });
    }

    template <class Reply>
    void delay_request(exchange<Reply> outgoing) {
        auto done = std::make_shared<once<Reply>>(std::move(outgoing.done));
        plan()->keep({.member = member_,
                      .deadline = outgoing.terms.deadline,
                      .give_up = [done, failed = std::move(outgoing.failed)](
                                     failure error) { (*done)(failed(std::move(error))); },
                      .deliver =
                          [done, send = std::move(outgoing.send), terms = outgoing.terms] {
                              send(late(terms), [done](Reply reply) { (*done)(std::move(reply)); });
                          },
                      .outlives_its_caller = true});
    }

    template <class Reply>
    void leave_unanswered(exchange<Reply> outgoing) {
        plan()->keep({.member = member_,
                      .deadline = outgoing.terms.deadline,
                      .give_up = [done = std::move(outgoing.done), failed = std::move(outgoing.failed)](
                                     failure error) { done(failed(std::move(error))); },
                      .deliver = {}});
    }

    /// The terms of a late request: a store does not know that the caller has given up.
    [[nodiscard]] static call late(call terms) {
        constexpr std::chrono::seconds time_to_answer{5};
        const auto now = clock::now();
        return {.deadline = terms.deadline > now ? terms.deadline : now + time_to_answer,
                .from = engines::caller::must_not_block};
    }

    void hint_everybody() {
        std::vector<std::weak_ptr<listener>> everybody;
        std::function<void()> holds_may_have_changed;
        {
            const std::lock_guard lock{guard_};
            everybody = listeners_;
            holds_may_have_changed = callbacks_.holds_may_have_changed;
        }
        for (const auto& one : everybody) {
            if (const auto listening = one.lock()) {
                listening->hint();
            }
        }
        if (holds_may_have_changed) {
            holds_may_have_changed();
        }
    }

    std::shared_ptr<fault_plan> plan_;
    std::unique_ptr<engines::engine> inner_;
    std::shared_ptr<plan_member> member_{std::make_shared<plan_member>()};
    std::mutex guard_;
    engines::client_callbacks callbacks_;
    std::vector<std::weak_ptr<listener>> listeners_;
};

namespace {

/// The inner engine's watch, seen through the plan.
class filtered_subscription final : public engines::subscription {
public:
    filtered_subscription(std::shared_ptr<fault_plan::state> plan, std::shared_ptr<listener> listening,
                          std::unique_ptr<engines::subscription> inner)
        : plan_{std::move(plan)}, listening_{std::move(listening)}, inner_{std::move(inner)} {}

    [[nodiscard]] bool active() const noexcept override {
        return plan_->connected() && inner_->active();
    }

private:
    std::shared_ptr<fault_plan::state> plan_;
    std::shared_ptr<listener> listening_;
    std::unique_ptr<engines::subscription> inner_;
};

}  // namespace

fault_engine::fault_engine(std::unique_ptr<engines::engine> inner, std::shared_ptr<fault_plan> plan)
    : wire_{std::make_shared<wire>(std::move(inner), std::move(plan))} {
    wire_->open();
}

fault_engine::~fault_engine() {
    wire_->close();
}

engines::abilities fault_engine::offers() noexcept {
    auto offered = wire_->inner().offers();
    offered.watching = offered.watching != nullptr ? this : nullptr;
    offered.operators = offered.operators != nullptr ? this : nullptr;
    offered.examination = offered.examination != nullptr ? this : nullptr;
    offered.latches = offered.latches != nullptr ? this : nullptr;
    offered.joint_locking = offered.joint_locking != nullptr ? this : nullptr;
    offered.lines = offered.lines != nullptr ? this : nullptr;
    return offered;
}

bool fault_engine::serves_plain_locks() const noexcept {
    return wire_->inner().offers().lines->serves_plain_locks();
}

const engines::guarantees& fault_engine::promises() const noexcept {
    return wire_->inner().promises();
}

const std::string& fault_engine::address() const noexcept {
    return wire_->inner().address();
}

std::string fault_engine::store_identity() const {
    return wire_->inner().store_identity();
}

void fault_engine::attach(engines::client_callbacks callbacks) {
    wire_->attach(std::move(callbacks));
}

void fault_engine::acquire(engines::acquire_request request, call terms,
                           completion<engines::acquire_reply> done) {
    wire_->route<engines::acquire_reply>(
        {.kind = call_kind::acquire,
         .terms = terms,
         .done = std::move(done),
         .failed = failed_reply<engines::acquire_reply>,
         .send = [to = &wire_->inner(), request = std::move(request)](call sent_terms, auto reply) {
             to->acquire(request, sent_terms, std::move(reply));
         }});
}

void fault_engine::acquire_all(std::vector<engines::acquire_request> all, call terms,
                               completion<engines::acquire_all_reply> done) {
    wire_->route<engines::acquire_all_reply>(
        {.kind = call_kind::acquire,
         .terms = terms,
         .done = std::move(done),
         .failed = failed_reply<engines::acquire_all_reply>,
         .send = [to = wire_->inner().offers().joint_locking, all = std::move(all)](call sent_terms,
                                                                                    auto reply) {
             to->acquire_all(all, sent_terms, std::move(reply));
         }});
}

bool fault_engine::acquires_together(const std::vector<std::string>& names) const {
    return wire_->inner().offers().joint_locking->acquires_together(names);
}

void fault_engine::renew(std::vector<engines::renew_request> batch, call terms,
                         completion<std::vector<engines::renew_reply>> done) {
    wire_->route<std::vector<engines::renew_reply>>(
        {.kind = call_kind::renew,
         .terms = terms,
         .done = std::move(done),
         .failed =
             [size = batch.size()](const failure& error) {
                 return std::vector<engines::renew_reply>(
                     size, {.result = engines::renew_reply::outcome::failed, .error = error});
             },
         .send = [to = &wire_->inner(), batch = std::move(batch)](
                     call sent_terms, auto reply) { to->renew(batch, sent_terms, std::move(reply)); }});
}

void fault_engine::release(engines::release_request request, call terms,
                           completion<engines::release_reply> done) {
    wire_->route<engines::release_reply>(
        {.kind = call_kind::release,
         .terms = terms,
         .done = std::move(done),
         .failed = failed_reply<engines::release_reply>,
         .send = [to = &wire_->inner(), request = std::move(request)](call sent_terms, auto reply) {
             to->release(request, sent_terms, std::move(reply));
         }});
}

void fault_engine::revoke(engines::revoke_request request, call terms,
                          completion<engines::revoke_reply> done) {
    wire_->route<engines::revoke_reply>(
        {.kind = call_kind::revoke,
         .terms = terms,
         .done = std::move(done),
         .failed = failed_reply<engines::revoke_reply>,
         .send = [to = wire_->inner().offers().operators, request = std::move(request)](call sent_terms,
                                                                                        auto reply) {
             to->revoke(request, sent_terms, std::move(reply));
         }});
}

void fault_engine::inspect(std::string name, call terms, completion<engines::inspect_reply> done) {
    wire_->route<engines::inspect_reply>(
        {.kind = call_kind::inspect,
         .terms = terms,
         .done = std::move(done),
         .failed = failed_reply<engines::inspect_reply>,
         .send = [to = wire_->inner().offers().operators, name = std::move(name)](call sent_terms,
                                                                                  auto reply) {
             to->inspect(name, sent_terms, std::move(reply));
         }});
}

void fault_engine::list(engines::list_request request, call terms,
                        completion<engines::list_reply> done) {
    wire_->route<engines::list_reply>(
        {.kind = call_kind::list,
         .terms = terms,
         .done = std::move(done),
         .failed = failed_reply<engines::list_reply>,
         .send = [to = wire_->inner().offers().operators, request = std::move(request)](call sent_terms,
                                                                                        auto reply) {
             to->list(request, sent_terms, std::move(reply));
         }});
}

void fault_engine::latch(engines::latch_request request, call terms,
                         completion<engines::latch_reply> done) {
    wire_->route<engines::latch_reply>(
        {.kind = call_kind::latch,
         .terms = terms,
         .done = std::move(done),
         .failed = failed_reply<engines::latch_reply>,
         .send = [to = wire_->inner().offers().latches, request = std::move(request)](call sent_terms,
                                                                                      auto reply) {
             to->latch(request, sent_terms, std::move(reply));
         }});
}

void fault_engine::examine(call terms, completion<engines::examine_reply> done) {
    wire_->route<engines::examine_reply>(
        {.kind = call_kind::examine,
         .terms = terms,
         .done = std::move(done),
         .failed = failed_reply<engines::examine_reply>,
         .send = [to = wire_->inner().offers().examination](call sent_terms, auto reply) {
             to->examine(sent_terms, std::move(reply));
         }});
}

std::unique_ptr<engines::subscription> fault_engine::watch(std::string name, lock_kind kind,
                                                           std::function<void()> hint) {
    auto plan = wire_->plan();
    auto listening = wire_->listen(std::move(hint));
    auto inner = wire_->inner().offers().watching->watch(
        std::move(name), kind, [plan, weak = std::weak_ptr{listening}] {
            const auto listener = weak.lock();
            if (listener && plan->notifications_flow()) {
                listener->hint();
            }
        });
    return std::make_unique<filtered_subscription>(std::move(plan), std::move(listening),
                                                   std::move(inner));
}

}  // namespace holdfast::testing
