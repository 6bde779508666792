#include <holdfast/testing/sim/records_simulation.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <quorum_stage.hpp>
#include <records/exchange.hpp>

namespace holdfast::testing::sim {

namespace {

using namespace engines;
using records::exchange;
using records::known_records;
using records::moment;
using records::operation;
using records::saved_record;
using records::verdict;

constexpr std::uint64_t most_record_events = 100'000;
constexpr std::uint32_t pool_limit = 3;
constexpr std::uint32_t latch_start = 1000;
constexpr double usual_drift = 0.0003;
/// Of the clients, for what the clocks differ by.
constexpr clock::duration fixed_margin = 2ms;
constexpr int margin_divisor = 1000;

const std::string stock_name{"stock"};
const std::string pool_name{"pool"};
const std::string latch_name{"gate"};

/// Who may be sure of what, and what was broken.
class records_referee {
public:
    struct valid_hold {
        claim_mode mode{};
        std::uint32_t permits{};
        /// True time.
        clock::time_point until;
    };

    void violated(std::string promise) {
        if (result.violation.empty()) {
            result.violation = std::move(promise);
        }
    }
    void holds(const std::string& name, const owner_id& owner, const valid_hold& sure,
               clock::time_point now) {
        std::uint32_t taken = sure.permits;
        for (const auto& [other, theirs] : valid_[name]) {
            if (other == owner || theirs.until <= now) {
                continue;
            }
            taken += theirs.permits;
            const bool shares =
                sure.mode != claim_mode::exclusive && theirs.mode != claim_mode::exclusive;
            if (!shares) {
                violated("two clients are sure of \"" + name + "\", one of them exclusively");
            }
        }
        if (sure.mode == claim_mode::permit && taken > pool_limit) {
            violated("clients are sure of " + std::to_string(taken) + " permits");
        }
        valid_[name][owner] = sure;
    }
    [[nodiscard]] clock::time_point sure_until(const std::string& name, const owner_id& owner) {
        const auto found = valid_[name].find(owner);
        return found == valid_[name].end() ? clock::time_point{} : found->second.until;
    }
    void lets_go(const std::string& name, const owner_id& owner) { valid_[name].erase(owner); }
    /// Its client has been told that nothing of it is in the store.
    void is_over(const owner_id& owner) { over_.insert(owner); }
    [[nodiscard]] bool over(const owner_id& owner) const { return over_.contains(owner); }
    /// A write extended its hold, after the end of this hold.
    void comes_back(const owner_id& owner) { back_.insert(owner); }
    void begins_anew(const owner_id& owner) { back_.erase(owner); }
    [[nodiscard]] bool came_back(const owner_id& owner) const { return back_.contains(owner); }

    records_result result;

private:
    std::map<std::string, std::map<owner_id, valid_hold>> valid_;
    std::set<owner_id> over_;
    std::set<owner_id> back_;
};

/// The store, and an auditor who compares what is there before and after every write.
class record_shelf {
public:
    record_shelf(quorum_stage& stage, records_referee& referee)
        : stage_{stage},
          referee_{referee},
          clock_{(stage.fraction() * 2 - 1) * usual_drift},
          offset_{stage.between(0s, 24h)} {}

    [[nodiscard]] clock::time_point now() const { return clock_.shows(stage_.now()) + offset_; }

    [[nodiscard]] record_reply read(const std::string& name) {
        return answer(record_reply::outcome::done, at(name));
    }
    [[nodiscard]] record_reply replace(const record_change& change, const owner_id& writer) {
        entry& place = at(change.name);
        if (place.stored.version != change.version) {
            ++referee_.result.conflicts;
            return answer(record_reply::outcome::conflict, place);
        }
        audit(change, place, writer);
        place = {{++last_version_, change.bytes}, clock::time_point{change.needed_until}};
        auto reply = answer(record_reply::outcome::done, place);
        reply.current.bytes.clear();
        return reply;
    }
    [[nodiscard]] saved_record show(const std::string& name) {
        const auto& bytes = at(name).stored.bytes;
        saved_record record = bytes.empty() ? saved_record{} : *records::decode(bytes);
        records::drop_ended(record, now());
        return record;
    }

    /// Until when, in true time, the store keeps the hold.
    [[nodiscard]] clock::time_point end_of(const std::string& name, const owner_id& owner) {
        for (const auto& one : show(name).holds) {
            if (one.owner == owner) {
                return clock_.truth_at(one.expires - offset_);
            }
        }
        return {};
    }

private:
    struct entry {
        stored_record stored;
        clock::time_point needed_until;
    };

    [[nodiscard]] entry& at(const std::string& name) {
        entry& place = entries_[name];
        if (place.stored.version != 0 && place.needed_until < now()) {
            place = {};
        }
        return place;
    }
    [[nodiscard]] record_reply answer(record_reply::outcome result, const entry& place) const {
        return {.result = result,
                .current = place.stored,
                .now = std::chrono::floor<std::chrono::microseconds>(now().time_since_epoch()),
                .error = {}};
    }

    void audit(const record_change& change, const entry& place, const owner_id& writer) {
        const auto after = records::decode(change.bytes);
        if (!after) {
            referee_.violated("a record was written that nobody can read");
            return;
        }
        const auto before = place.stored.bytes.empty()
                                ? saved_record{}
                                : records::decode(place.stored.bytes).value_or(saved_record{});
        std::uint32_t taken = 0;
        std::size_t living = 0;
        bool exclusive = false;
        for (const auto& one : after->holds) {
            if (one.expires <= now()) {
                continue;
            }
            ++living;
            taken += one.permits;
            exclusive = exclusive || one.mode == claim_mode::exclusive;
            audit_token(change.name, one, before);
            audit_life(one, before);
            if (referee_.over(one.owner)) {
                referee_.violated("a hold came back after its client was told that it is gone");
            }
        }
        if (exclusive && living > 1) {
            referee_.violated("the store has an exclusive owner and another one");
        }
        if (change.name == pool_name && taken > pool_limit) {
            referee_.violated("the store has given " + std::to_string(taken) + " permits");
        }
        for (const auto& one : before.holds) {
            const bool kept =
                std::find(after->holds.begin(), after->holds.end(), one) != after->holds.end();
            if (one.owner != writer && one.expires > now() && !kept) {
                referee_.violated("a request changed the hold of another owner");
            }
        }
    }
    void audit_life(const records::hold& one, const saved_record& before) {
        const auto old =
            std::find_if(before.holds.begin(), before.holds.end(), [&](const records::hold& each) {
                return each.owner == one.owner && each.first_token == one.first_token;
            });
        if (old == before.holds.end()) {
            referee_.begins_anew(one.owner);
        } else if (old->expires <= now()) {
            referee_.comes_back(one.owner);
        }
    }
    void audit_token(const std::string& name, const records::hold& one, const saved_record& before) {
        const auto old =
            std::find_if(before.holds.begin(), before.holds.end(),
                         [&](const records::hold& each) { return each.owner == one.owner; });
        const bool upgraded = old != before.holds.end() && old->mode == claim_mode::shared &&
                              one.mode == claim_mode::exclusive;
        auto& largest = largest_token_[name];
        if ((old == before.holds.end() || upgraded) && one.first_token.value <= largest) {
            referee_.violated("a grant has a token that is not larger than all before");
        }
        largest = std::max(largest, one.first_token.value + one.token_count - 1);
    }

    quorum_stage& stage_;
    records_referee& referee_;
    const uneven_clock clock_;
    const clock::duration offset_;
    std::map<std::string, entry> entries_;
    std::uint64_t last_version_{};
    std::map<std::string, std::uint64_t> largest_token_;
};

struct network_quality {
    std::uint32_t lost_one_in{};
    std::uint32_t late_one_in{};
    std::uint32_t refused_one_in{};
    /// No faults any more.
    bool calm{};

    [[nodiscard]] static bool happens(quorum_stage& stage, std::uint32_t one_in) {
        return one_in != 0 && stage.one_in(one_in);
    }
};

/// One client with one thread: takes a lock, renews it, releases it, or counts a latch down.
class record_user {
public:
    struct terms {
        std::chrono::milliseconds ttl{};
        int rounds{};
        bool crashes{};
        bool long_breaks{};
    };

    record_user(quorum_stage& stage, records_referee& referee, record_shelf& shelf,
                const network_quality& network, const terms& agreed, std::uint64_t number)
        : stage_{stage},
          referee_{referee},
          shelf_{shelf},
          network_{network},
          terms_{agreed},
          clock_{(stage.fraction() * 2 - 1) * usual_drift},
          rounds_left_{agreed.rounds},
          client_{1, number + 1, 0} {}

    void start() {
        pause(stage_.between(0ms, 50ms), [this] { begin_round(); });
    }
    [[nodiscard]] bool finished() const noexcept { return rounds_left_ == 0; }
    [[nodiscard]] std::uint32_t counted() const noexcept { return counted_; }
    [[nodiscard]] std::uint32_t perhaps_counted() const noexcept { return perhaps_counted_; }

private:
    using action = exchange::action;
    using next_step = std::function<void()>;
    static constexpr clock::duration patience = 30ms;

    [[nodiscard]] clock::time_point now() const { return clock_.shows(stage_.now()); }

    /// What is to happen in this life of the client.
    void pause(clock::duration delay, next_step next) {
        stage_.after(delay, [this, life = life_, next = std::move(next)] {
            if (life == life_) {
                next();
            }
        });
    }

    // One request, as the engine performs it.

    void perform(operation request, next_step done) {
        machine_.emplace(*known_, std::move(request), now() + 5 * patience, stage_.pick(1U << 31U));
        done_ = std::move(done);
        go_on(machine_->start(now()));
    }
    void go_on(action next) {
        switch (next) {
            case action::finish:
                // Whatever is done next may begin another request.
                std::exchange(done_, {})();
                return;
            case action::pause:
                pause(machine_->pause(), [this] { go_on(machine_->on_pause_over(now())); });
                return;
            case action::read:
            case action::replace:
                send(next);
                return;
        }
    }
    [[nodiscard]] clock::duration delay() {
        const bool late = !network_.calm && network_quality::happens(stage_, network_.late_one_in);
        return late ? stage_.between(10ms, 2 * terms_.ttl) : stage_.between(100us, 2ms);
    }
    [[nodiscard]] bool loses() {
        return !network_.calm && network_quality::happens(stage_, network_.lost_one_in);
    }
    void send(action request) {
        const auto number = ++asked_;
        const auto sent = now();
        const bool writes = request == action::replace;
        if (!network_.calm && network_quality::happens(stage_, network_.refused_one_in)) {
            pause(1ms, [this, number, sent] {
                receive(number, sent, {.error = {errc::store_unavailable, "refused"}});
            });
            return;
        }
        pause(patience, [this, number, sent, writes] {
            receive(number, sent,
                    {.error = {writes ? errc::outcome_unknown : errc::store_unavailable, "silence"}});
        });
        if (loses()) {
            return;
        }
        // It arrives even if the client does not live to see it.
        const auto change = writes ? machine_->change() : record_change{.name = machine_->name()};
        stage_.after(delay(), [this, change, writes, number, sent, owner = owner_, life = life_] {
            auto reply = writes ? shelf_.replace(change, owner) : shelf_.read(change.name);
            const bool done = writes && reply.result == record_reply::outcome::done;
            if (loses()) {
                referee_.result.unanswered += done ? 1 : 0;
                return;
            }
            stage_.after(delay(), [this, number, sent, life, reply = std::move(reply)]() mutable {
                if (life == life_) {
                    receive(number, sent, std::move(reply));
                }
            });
        });
    }
    void receive(std::uint64_t number, clock::time_point sent, record_reply reply) {
        if (number == asked_) {
            ++asked_;
            go_on(machine_->on_reply(std::move(reply), sent, now()));
        }
    }

    // What it does.

    void begin_round() {
        if (rounds_left_ == 0) {
            return;
        }
        owner_ = {client_.high, client_.low, ++last_sequence_};
        if (terms_.crashes && !network_.calm && stage_.one_in(6)) {
            pause(stage_.between(0ms, 2 * terms_.ttl), [this] { crash(); });
        }
        switch (stage_.pick(5)) {
            case 0:
                count_down();
                return;
            case 1:
                name_ = pool_name;
                mode_ = claim_mode::permit;
                permits_ = 1 + stage_.pick(2);
                break;
            default:
                name_ = stock_name;
                mode_ = stage_.one_in(3) ? claim_mode::shared : claim_mode::exclusive;
                permits_ = 1;
                break;
        }
        acquire();
    }
    void end_round() {
        --rounds_left_;
        const bool long_break = terms_.long_breaks && stage_.one_in(2);
        pause(long_break ? stage_.between(9min, 20min) : stage_.between(0ms, 50ms),
              [this] { begin_round(); });
    }
    void crash() {
        if (rounds_left_ == 0) {
            return;
        }
        ++life_;
        referee_.lets_go(name_, owner_);
        perhaps_counted_ += counting_ ? 1 : 0;
        counting_ = false;
        client_.high += 1;
        known_ = std::make_unique<known_records>();
        rounds_left_ -= 1;
        pause(stage_.between(1ms, terms_.ttl), [this] { begin_round(); });
    }

    void acquire(bool converts = false) {
        asked_at_ = now();
        acquire_request request{.name = name_,
                                .mode = mode_,
                                .permits = permits_,
                                .limit = pool_limit,
                                .owner = owner_,
                                .ttl = terms_.ttl,
                                .converts = converts};
        perform({.name = name_,
                 .owner = owner_,
                 .rule =
                     [this, request](saved_record& record, const moment& at) {
                         auto result = records::acquire(record.holds, request, at, record.last_token);
                         if (result.changed) {
                             expires_ = record.holds[result.own].expires;
                         }
                         acquired_ = std::move(result.reply);
                         return verdict{result.changed, result.freed};
                     }},
                [this, converts] { on_acquired(converts); });
    }
    void on_acquired(bool converts) {
        const bool refused = machine_->error() || acquired_.result != acquire_reply::outcome::granted;
        if (!refused) {
            ++referee_.result.grants;
            expect_never_over("a grant");
            trust();
            return;
        }
        const bool gives_up = converts || stage_.one_in(12);
        if (gives_up) {
            release();
        } else {
            pause(stage_.between(20ms, 60ms), [this] { acquire(); });
        }
    }
    /// From when it was asked for; less than what was asked for, if the store says so.
    void trust() {
        auto ttl = machine_->shortened_ttl(expires_, terms_.ttl, asked_at_);
        ttl = ttl.count() > 0 ? std::min(ttl, terms_.ttl) : terms_.ttl;
        const auto until = asked_at_ + ttl - ttl / margin_divisor - fixed_margin;
        if (until <= now()) {
            release();
            return;
        }
        if (shelf_.end_of(name_, owner_) < clock_.truth_at(until)) {
            referee_.violated("a client is sure of more than the store has granted");
        }
        referee_.holds(name_, owner_,
                       {mode_, mode_ == claim_mode::permit ? permits_ : 0, clock_.truth_at(until)},
                       stage_.now());
        hold();
    }
    void hold() {
        const auto next = stage_.pick(7);
        if (next < 3) {
            pause(terms_.ttl / 3, [this] { renew(); });
        } else if (next == 6) {
            // At the end of the lease, or a little later.
            pause(asked_at_ + terms_.ttl + stage_.between(0ms, 10ms) - 8ms - now(),
                  [this] { renew(); });
        } else if (next == 3 && name_ == stock_name) {
            // A downgrade may take effect as soon as it is sent; an upgrade when it is granted.
            const bool down = mode_ == claim_mode::exclusive;
            if (down) {
                referee_.lets_go(name_, owner_);
            }
            mode_ = down ? claim_mode::shared : claim_mode::exclusive;
            acquire(true);
        } else {
            pause(stage_.between(0ms, terms_.ttl / 2), [this] { release(); });
        }
    }
    void renew() {
        asked_at_ = now();
        perform(
            {.name = name_,
             .owner = owner_,
             .rule =
                 [this](saved_record& record, const moment& at) {
                     auto result = records::renew(record, {name_, mode_, owner_, terms_.ttl}, at.now);
                     expires_ = at.now + terms_.ttl;
                     renewed_ = std::move(result.reply);
                     return verdict{result.changed, result.freed};
                 }},
            [this] { on_renewed(); });
    }
    void on_renewed() {
        if (machine_->error()) {
            hold();
        } else if (renewed_.result == renew_reply::outcome::renewed) {
            expect_never_over("a renewal");
            trust();
        } else {
            sure_until_ = referee_.sure_until(name_, owner_);
            expect_lost("a renewal");
            referee_.lets_go(name_, owner_);
            release();
        }
    }
    /// Somebody may have looked meanwhile, and seen that the name is free.
    void expect_never_over(const std::string& request) {
        if (referee_.came_back(owner_)) {
            referee_.violated(request + " counts on a hold that was over in the store meanwhile");
        }
    }
    void expect_lost(const std::string& request) {
        if (stage_.now() < sure_until_) {
            referee_.violated(request + " was told that a hold is gone which its client is sure of");
        }
    }

    void release() {
        sure_until_ = referee_.sure_until(name_, owner_);
        unknown_ = false;
        referee_.lets_go(name_, owner_);
        release_again();
    }
    void release_again() {
        perform({.name = name_,
                 .rule =
                     [this](saved_record& record, const moment& at) {
                         auto result =
                             records::release(record, {.name = name_, .owner = owner_}, at.now);
                         released_ = std::move(result.reply);
                         return verdict{result.changed, result.freed};
                     },
                 .repetition = operation::kind::once},
                [this] { on_released(); });
    }
    void on_released() {
        const failure& error = machine_->error();
        if (error) {
            unknown_ = unknown_ || error.code == errc::outcome_unknown;
            pause(stage_.between(5ms, 30ms), [this] { release_again(); });
            return;
        }
        if (released_.result == release_reply::outcome::gone && !unknown_) {
            expect_lost("a release");
        }
        referee_.is_over(owner_);
        end_round();
    }

    void count_down() {
        counting_ = true;
        const latch_request request{.what = latch_request::operation::count_down,
                                    .name = latch_name,
                                    .count = 1,
                                    .lifetime = {},
                                    .request = owner_};
        perform({.name = latch_name,
                 .rule =
                     [this, request](saved_record& record, const moment& at) {
                         auto result = records::latch(record, request, at.now);
                         counted_reply_ = std::move(result.reply);
                         return verdict{result.changed, result.freed};
                     }},
                [this] {
                    if (machine_->error()) {
                        pause(10ms, [this] { count_down(); });
                        return;
                    }
                    counting_ = false;
                    counted_ += counted_reply_.applied ? 1 : 0;
                    end_round();
                });
    }

    quorum_stage& stage_;
    records_referee& referee_;
    record_shelf& shelf_;
    const network_quality& network_;
    const terms terms_;
    const uneven_clock clock_;
    int rounds_left_;
    owner_id client_;
    std::unique_ptr<known_records> known_{std::make_unique<known_records>()};
    std::optional<exchange> machine_;
    next_step done_;
    std::uint64_t asked_{};
    std::uint64_t life_{};
    std::int64_t last_sequence_{};

    owner_id owner_;
    std::string name_{stock_name};
    claim_mode mode_{};
    std::uint32_t permits_{1};
    clock::time_point asked_at_;
    clock::time_point expires_;
    acquire_reply acquired_;
    renew_reply renewed_;
    release_reply released_;
    latch_reply counted_reply_;
    /// A release was not answered.
    bool unknown_{};
    clock::time_point sure_until_;
    bool counting_{};
    std::uint32_t counted_{};
    std::uint32_t perhaps_counted_{};
};

class records_world {
public:
    explicit records_world(std::uint64_t seed) : stage_{seed}, shelf_{stage_, referee_} {
        if (!stage_.one_in(4)) {
            network_.lost_one_in = stage_.one_in(2) ? 0 : 5 + stage_.pick(40);
            network_.late_one_in = stage_.one_in(2) ? 0 : 5 + stage_.pick(40);
            network_.refused_one_in = stage_.one_in(2) ? 0 : 10 + stage_.pick(40);
        }
        const auto ttl =
            std::chrono::duration_cast<std::chrono::milliseconds>(stage_.between(200ms, 2s));
        const record_user::terms terms{ttl, 2 + static_cast<int>(stage_.pick(3)), stage_.one_in(2),
                                       stage_.one_in(8)};
        const auto users = 2 + stage_.pick(3);
        set_latch();
        for (std::uint32_t number = 0; number < users; ++number) {
            users_.push_back(
                std::make_unique<record_user>(stage_, referee_, shelf_, network_, terms, number));
        }
        stage_.after(5s, [this] { network_.calm = true; });
    }

    [[nodiscard]] records_result run() {
        for (const auto& each : users_) {
            each->start();
        }
        while (referee_.result.violation.empty() && stage_.events() < most_record_events &&
               stage_.step()) {
        }
        check_end();
        referee_.result.events = stage_.events();
        return std::move(referee_.result);
    }

private:
    void set_latch() {
        saved_record record;
        record.latch = {latch_start, shelf_.now() + 24h, {}};
        const auto needed_until =
            std::chrono::ceil<std::chrono::microseconds>(record.latch->expires.time_since_epoch());
        static_cast<void>(shelf_.replace(
            {.name = latch_name, .bytes = records::encode(record), .needed_until = needed_until}, {}));
    }
    void check_end() {
        if (!referee_.result.violation.empty()) {
            return;
        }
        std::uint32_t counted = 0;
        std::uint32_t perhaps = 0;
        for (const auto& each : users_) {
            if (!each->finished()) {
                referee_.violated("somebody waits for ever");
            }
            counted += each->counted();
            perhaps += each->perhaps_counted();
        }
        for (const auto& name : {stock_name, pool_name}) {
            for (const auto& one : shelf_.show(name).holds) {
                if (referee_.over(one.owner)) {
                    referee_.violated("a hold is left behind");
                }
            }
        }
        const auto latch = shelf_.show(latch_name).latch;
        const auto taken = latch_start - (latch ? latch->count : 0);
        if (taken < counted || taken > counted + perhaps) {
            referee_.violated("a latch was counted down " + std::to_string(taken) + " times, and not " +
                              std::to_string(counted));
        }
    }

    quorum_stage stage_;
    records_referee referee_;
    record_shelf shelf_;
    network_quality network_;
    std::vector<std::unique_ptr<record_user>> users_;
};

}  // namespace

records_result run_records(std::uint64_t seed) {
    return records_world{seed}.run();
}

}  // namespace holdfast::testing::sim
