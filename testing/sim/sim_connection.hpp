#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include <context.hpp>
#include <holdfast/engine.hpp>
#include <network.hpp>

namespace holdfast::testing::sim {

/// One life of a client's connection to the store, as the engine that the performer sees. Checks what
/// is sent.
class sim_connection final : public engines::engine, public engines::watching {
public:
    /// What became of an owner at the store.
    struct owner_state {
        owner_id owner;
        /// The last request to acquire got no answer, and nothing has been done about it since.
        bool unknown{};
        bool release_sent{};
        /// The store has answered that it does not have the lease.
        bool gone{};
        /// After this nothing is left to find out.
        clock::time_point forgotten_by{};
    };

    sim_connection(context& run, network& net, std::uint8_t client, std::uint16_t life)
        : run_{run}, net_{net}, client_{client}, life_{life} {}

    [[nodiscard]] const engines::guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] engines::abilities offers() noexcept override { return {.watching = this}; }
    void attach(engines::client_callbacks callbacks) override { callbacks_ = std::move(callbacks); }

    void acquire(engines::acquire_request asked, engines::call how,
                 engines::completion<engines::acquire_reply> done) override;
    void renew(std::vector<engines::renew_request> batch, engines::call how,
               engines::completion<std::vector<engines::renew_reply>> done) override;
    void release(engines::release_request back, engines::call how,
                 engines::completion<engines::release_reply> done) override;
    [[nodiscard]] std::unique_ptr<engines::subscription> watch(std::string name, lock_kind kind,
                                                               std::function<void()> hint) override;

    // What arrives from the network.
    void on_reply(const message& what);
    /// Also for a watch that has ended: a hint may have been on its way.
    void on_hint(std::size_t lock) const;
    void on_watch_active(std::size_t lock) const;
    void on_turn(const turn& told) const;
    void on_holds_may_have_changed() const { callbacks_.holds_may_have_changed(); }

    [[nodiscard]] owner_state& state_of(const owner_id& owner);
    [[nodiscard]] const std::vector<owner_state>& owners() const noexcept { return owners_; }

private:
    class watch_in_place;
    using completion = std::variant<engines::completion<engines::acquire_reply>,
                                    engines::completion<std::vector<engines::renew_reply>>,
                                    engines::completion<engines::release_reply>>;

    /// The number of the request.
    std::uint64_t expect(completion done);
    /// Whether it is in place at once.
    bool set_watch(std::size_t lock, bool wanted);

    context& run_;
    network& net_;
    std::uint8_t client_;
    std::uint16_t life_;
    engines::guarantees promises_;
    std::string address_{"simulated"};
    engines::client_callbacks callbacks_;
    std::vector<owner_state> owners_;
    std::uint64_t last_request_{};
    std::unordered_map<std::uint64_t, completion> unanswered_;
    std::array<std::function<void()>, lock_count> hints_;
    std::array<bool, lock_count> watched_{};
};

}  // namespace holdfast::testing::sim
