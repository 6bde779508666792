#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <memory/store_model.hpp>
#include <quorum_stage.hpp>

namespace holdfast::testing::sim {

/// 2026, or thereabouts, when the virtual clock shows zero.
constexpr std::uint64_t epoch_microseconds = 1'790'000'000'000'000;

class member_link;

/// One member of the quorum: the model of a store, behind a network.
class quorum_member {
public:
    quorum_member(quorum_stage& stage, std::size_t number, double rate, clock::duration wall_offset);

    [[nodiscard]] clock::time_point local() const noexcept {
        return clock_.shows(stage_.now()) + stepped_;
    }
    [[nodiscard]] bool up() const noexcept { return up_; }
    /// Requests that arrive while it stands still wait for this.
    [[nodiscard]] clock::time_point awake_at() const noexcept { return awake_at_; }
    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    [[nodiscard]] clock::time_point since() const noexcept { return since_; }
    [[nodiscard]] engines::memory::store_model& store() noexcept { return *store_; }

    /// Its clock jumps; backward if negative.
    void step_clock(clock::duration by) noexcept { stepped_ += by; }
    void stand_still(clock::duration how_long) { awake_at_ = stage_.now() + how_long; }
    enum class memory : std::uint8_t { kept, lost };
    void restart(clock::duration down_for, memory data);

    void add(member_link* who) { links_.push_back(who); }
    /// Tells everybody who watches what became free.
    void notify();

private:
    [[nodiscard]] std::uint64_t wall_microseconds() const noexcept;
    void come_up();

    quorum_stage& stage_;
    std::size_t number_;
    uneven_clock clock_;
    clock::duration stepped_{};
    clock::duration wall_offset_;
    std::unique_ptr<engines::memory::store_model> store_;
    std::vector<member_link*> links_;
    clock::time_point awake_at_{};
    clock::time_point since_;
    std::string id_;
    int lives_{};
    bool up_{true};
};

/// What the parts of one client have in common: a clock, and whether they run at all.
struct client_process {
    uneven_clock time;
    /// Nothing happens in it before this.
    clock::time_point awake_at{};
};

/// How lossy the network is: one message in so many, 0 for none.
struct network_quality {
    std::uint32_t lost_one_in{};
    std::uint32_t late_one_in{};
};

/// A client's connection to a member, as the engine that the quorum sees.
class member_link final : public engines::engine,
                          public engines::watching,
                          public engines::joint_locking,
                          public engines::votes {
public:
    member_link(quorum_stage& stage, quorum_member& member, const client_process& client,
                network_quality quality);

    [[nodiscard]] const engines::guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] engines::abilities offers() noexcept override {
        return {.watching = this, .joint_locking = this, .votes = this};
    }

    void acquire(engines::acquire_request request, engines::call how,
                 engines::completion<engines::acquire_reply> done) override;
    [[nodiscard]] bool acquires_together(const std::vector<std::string>&) const override {
        return true;
    }
    void acquire_all(std::vector<engines::acquire_request> all, engines::call how,
                     engines::completion<engines::acquire_all_reply> done) override;
    void renew(std::vector<engines::renew_request> batch, engines::call how,
               engines::completion<std::vector<engines::renew_reply>> done) override;
    void release(engines::release_request request, engines::call how,
                 engines::completion<engines::release_reply> done) override;
    [[nodiscard]] engines::store_instance instance(const std::string&) const override {
        return answered_by_;
    }
    [[nodiscard]] std::unique_ptr<engines::subscription> watch(std::string, lock_kind,
                                                               std::function<void()> hint) override;

    void send_hint();

private:
    /// Sends something to the member, does `work` there, and brings its answer back, or `error` filled
    /// in by `fail` when there is none by the deadline.
    template <class Reply, class Work, class Fail>
    void exchange(engines::call how, engines::completion<Reply> done, Work work, Fail fail);
    /// Lets something happen in the client, once it is awake.
    void deliver(clock::time_point when, std::function<void()> what);
    [[nodiscard]] clock::duration delay();
    [[nodiscard]] engines::store_instance seen_by_client() const;

    quorum_stage& stage_;
    quorum_member& member_;
    const client_process& client_;
    network_quality quality_;
    engines::guarantees promises_;
    std::string address_;
    engines::store_instance answered_by_;
    clock::time_point last_request_{};
    clock::time_point last_reply_{};
    /// Of every watch; empty: that one has ended.
    std::vector<std::shared_ptr<std::function<void()>>> hints_;
};

}  // namespace holdfast::testing::sim
