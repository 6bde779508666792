#pragma once

#include <vector>

#include <context.hpp>
#include <network.hpp>
#include <referee.hpp>
#include <sim_client.hpp>
#include <sim_store.hpp>

namespace holdfast::testing::sim {

/// Everything together, and what strikes it.
class world {
public:
    world(const plan& what, bool tracing);

    void run();
    [[nodiscard]] context& story() noexcept { return run_; }
    [[nodiscard]] std::uint64_t grants() const noexcept { return judge_.grants(); }

private:
    void dispatch(const happening& event);
    [[nodiscard]] bool work_is_done() const;
    void plan_faults();
    void plan_fault(feature what);
    void strike(feature what);
    void strike_client(feature what, dice::severity how);
    void strike_store(feature what, dice::severity how);
    void end_faults();
    void check_wake_up(const happening& event);
    void check_readers(const happening& event);
    void check_at_end();

    context run_;
    referee judge_;
    sim_store store_;
    network net_;
    std::vector<sim_client> clients_;
};

}  // namespace holdfast::testing::sim
