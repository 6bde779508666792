#pragma once

#include <memory>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/testing/fault_plan.hpp>

namespace holdfast::testing {

/// An engine with a bad connection to its store. It passes all calls on to another engine, except for
/// the faults of the plan.
///
///     auto plan = std::make_shared<fault_plan>();
///     auto identity = engines::make_identity();
///     client client{std::make_unique<fault_engine>(engines::open("memory:", identity), plan),
///     identity}; plan->lose_replies_of_next(call_kind::acquire);
///
/// With all its faults it keeps the contract of engines: every call ends once, and by its deadline; the
/// destructor ends the calls that are kept with `errc::shut_down`. Several engines may share a plan.
class fault_engine final : public engines::engine,
                           public engines::watching,
                           public engines::operators_view,
                           public engines::examination,
                           public engines::latches,
                           public engines::joint_locking,
                           public engines::lines {
public:
    fault_engine(std::unique_ptr<engines::engine> inner, std::shared_ptr<fault_plan> plan);
    fault_engine(const fault_engine&) = delete;
    fault_engine& operator=(const fault_engine&) = delete;
    ~fault_engine() override;

    [[nodiscard]] const engines::guarantees& promises() const noexcept override;
    /// The abilities of the other engine, but no thread is lent to it.
    [[nodiscard]] engines::abilities offers() noexcept override;
    [[nodiscard]] bool serves_plain_locks() const noexcept override;
    [[nodiscard]] const std::string& address() const noexcept override;
    [[nodiscard]] std::string store_identity() const override;
    void attach(engines::client_callbacks callbacks) override;

    void acquire(engines::acquire_request request, engines::call terms,
                 engines::completion<engines::acquire_reply> done) override;
    /// Counts as a call of the kind `acquire`.
    void acquire_all(std::vector<engines::acquire_request> all, engines::call terms,
                     engines::completion<engines::acquire_all_reply> done) override;
    [[nodiscard]] bool acquires_together(const std::vector<std::string>& names) const override;
    void renew(std::vector<engines::renew_request> batch, engines::call terms,
               engines::completion<std::vector<engines::renew_reply>> done) override;
    void release(engines::release_request request, engines::call terms,
                 engines::completion<engines::release_reply> done) override;
    void revoke(engines::revoke_request request, engines::call terms,
                engines::completion<engines::revoke_reply> done) override;
    void inspect(std::string name, engines::call terms,
                 engines::completion<engines::inspect_reply> done) override;
    void list(engines::list_request request, engines::call terms,
              engines::completion<engines::list_reply> done) override;
    void latch(engines::latch_request request, engines::call terms,
               engines::completion<engines::latch_reply> done) override;
    void examine(engines::call terms, engines::completion<engines::examine_reply> done) override;

    [[nodiscard]] std::unique_ptr<engines::subscription> watch(std::string name, lock_kind kind,
                                                               std::function<void()> hint) override;

private:
    class wire;
    std::shared_ptr<wire> wire_;
};

}  // namespace holdfast::testing
