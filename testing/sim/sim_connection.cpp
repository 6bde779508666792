#include <sim_connection.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::testing::sim {

class sim_connection::watch_in_place final : public engines::subscription {
public:
    watch_in_place(sim_connection& on, std::size_t lock)
        : on_{on}, lock_{lock}, active_{on.set_watch(lock, true)} {}
    watch_in_place(const watch_in_place&) = delete;
    watch_in_place& operator=(const watch_in_place&) = delete;
    ~watch_in_place() override { on_.set_watch(lock_, false); }
    [[nodiscard]] bool active() const noexcept override { return active_; }

private:
    sim_connection& on_;
    std::size_t lock_;
    bool active_;
};

sim_connection::owner_state& sim_connection::state_of(const owner_id& owner) {
    const auto found = std::find_if(owners_.begin(), owners_.end(),
                                    [&](const owner_state& one) { return one.owner == owner; });
    return found != owners_.end() ? *found : owners_.emplace_back(owner_state{.owner = owner});
}

std::uint64_t sim_connection::expect(completion done) {
    unanswered_.emplace(++last_request_, std::move(done));
    return last_request_;
}

void sim_connection::acquire(engines::acquire_request asked, engines::call how,
                             engines::completion<engines::acquire_reply> done) {
    const auto id = expect(std::move(done));
    run_.log.note("client ", +client_, ": asks for ", asked.name, " as ", asked.owner.sequence,
                  ", tokens ", asked.token_count, " (r", id, ")");
    if (state_of(asked.owner).release_sent) {
        run_.log.violated("an owner serves once", "client ", +client_, " asks for \"", asked.name,
                          "\" as owner ", asked.owner.sequence, ", which it has released");
    }
    net_.send(client_, life_, id, std::move(asked), how.deadline);
}

void sim_connection::renew(std::vector<engines::renew_request> batch, engines::call how,
                           engines::completion<std::vector<engines::renew_reply>> done) {
    const auto id = expect(std::move(done));
    for (const auto& one : batch) {
        run_.log.note("client ", +client_, ": renews ", one.name, " of ", one.owner.sequence, " (r", id,
                      ")");
        // Only a lease that is gone may be asked after, which extends nothing.
        const auto& owner = state_of(one.owner);
        const bool asks_for_reason = owner.gone && one.ttl == core::terms{}.shortest_ttl;
        if (owner.release_sent && !asks_for_reason) {
            run_.log.violated("no renewal after release", "client ", +client_, " renews \"", one.name,
                              "\" of owner ", one.owner.sequence, ", which it has released");
        }
    }
    net_.send(client_, life_, id, std::move(batch), how.deadline);
}

void sim_connection::release(engines::release_request back, engines::call how,
                             engines::completion<engines::release_reply> done) {
    const auto id = expect(std::move(done));
    run_.log.note("client ", +client_, ": gives back ", back.name, " of ", back.owner.sequence, " (r",
                  id, ")");
    state_of(back.owner).release_sent = true;
    net_.send(client_, life_, id, std::move(back), how.deadline);
}

std::unique_ptr<engines::subscription> sim_connection::watch(std::string name, lock_kind,
                                                             std::function<void()> hint) {
    const auto lock = lock_index(name);
    hints_[lock] = std::move(hint);
    return std::make_unique<watch_in_place>(*this, lock);
}

bool sim_connection::set_watch(std::size_t lock, bool wanted) {
    run_.log.note("client ", +client_, wanted ? ": watches " : ": stops watching ", lock_name(lock));
    watched_[lock] = wanted;
    return net_.set_watch(client_, life_, lock, wanted);
}

void sim_connection::on_reply(const message& what) {
    run_.log.hash(what.id);
    const auto done = unanswered_.extract(what.id);
    if (done.empty()) {
        run_.log.violated("every request is answered once", "client ", +client_, ": request r", what.id,
                          " is answered again");
        return;
    }
    if (const auto* acquired = std::get_if<engines::acquire_reply>(&what.answer)) {
        using outcome = engines::acquire_reply::outcome;
        run_.log.note("client ", +client_, ": hears of request r", what.id,
                      acquired->result == outcome::granted ? ": granted"
                      : acquired->result == outcome::busy  ? ": busy"
                                                           : ": failed");
        auto& owner = state_of(std::get<engines::acquire_request>(what.asked).owner);
        owner.unknown = acquired->result == outcome::failed &&
                        (owner.unknown || acquired->error.code == errc::outcome_unknown);
        owner.forgotten_by = run_.now() + run_.numbers.ttl;
        std::get<0>(done.mapped())(*acquired);
    } else if (const auto* renewed = std::get_if<renew_replies>(&what.answer)) {
        run_.log.note("client ", +client_, ": hears of renewal r", what.id);
        std::get<1>(done.mapped())(*renewed);
    } else {
        const auto& released = std::get<engines::release_reply>(what.answer);
        run_.log.note("client ", +client_, ": hears of release r", what.id,
                      released.error ? ": failed" : ": done");
        if (released.result == engines::release_reply::outcome::gone) {
            state_of(std::get<engines::release_request>(what.asked).owner).gone = true;
        }
        std::get<2>(done.mapped())(released);
    }
}

void sim_connection::on_hint(std::size_t lock) const {
    if (const auto hint = hints_[lock]) {  // a copy: it may begin another watch
        hint();
    }
}

void sim_connection::on_watch_active(std::size_t lock) const {
    if (watched_[lock]) {
        on_hint(lock);
    }
}

void sim_connection::on_turn(const turn& told) const {
    callbacks_.turn_of(told.name, told.owner, told.granted);
}

}  // namespace holdfast::testing::sim
