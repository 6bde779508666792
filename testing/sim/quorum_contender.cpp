#include <quorum_contender.hpp>

#include <holdfast/quorum.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::testing::sim {

namespace {

constexpr auto request_timeout = 500ms;
constexpr auto recheck = 1s;
/// In true time. Without faults nobody waits that long.
constexpr auto patience = 60s;

[[nodiscard]] std::uint64_t microseconds(clock::duration what) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(what).count());
}

}  // namespace

const std::string& lock_under_test() {
    static const std::string name{"stock"};
    return name;
}

void quorum_referee::complain(const std::string& what) {
    if (result_.violation.empty()) {
        const auto at =
            std::chrono::duration_cast<std::chrono::microseconds>(stage_.now().time_since_epoch());
        result_.violation = what + " (at " + std::to_string(at.count()) + " us)";
    }
}

void quorum_referee::check_token(fencing_token token) {
    if (!nothing_forgotten()) {
        return;
    }
    if (holds_by_token_.contains(token.value)) {
        complain("two holds have token " + std::to_string(token.value));
    }
    // With clocks beyond the bound a grant may be over before its holder hears of it.
    if (plan_.clocks_are_trusted() && token <= largest_granted_) {
        complain("token " + std::to_string(token.value) + " was granted after " +
                 std::to_string(largest_granted_.value));
    }
}

void quorum_referee::granted(std::uint32_t client, fencing_token token,
                             clock::time_point believes_until) {
    ++result_.grants;
    check_token(token);
    holds_by_token_[token.value] = result_.grants;
    largest_granted_ = std::max(largest_granted_, token);
    const bool promised = plan_.clocks_are_trusted() && plan_.members != quorum_plan::restarts::forget;
    for (const auto& [other, until] : beliefs_) {
        if (other == client || until <= stage_.now()) {
            continue;
        }
        ++result_.overlaps;
        if (promised) {
            complain("client " + std::to_string(client) + " was granted the lock while client " +
                     std::to_string(other) + " rightly believed in it");
        }
    }
    beliefs_[client] = believes_until;
}

void quorum_referee::extended(std::uint32_t client, clock::time_point believes_until) {
    auto& until = beliefs_[client];
    until = std::max(until, believes_until);
}

void quorum_referee::written(fencing_token token) {
    if (token < largest_written_) {
        ++result_.stale_writes_refused;
        return;
    }
    const auto grant = holds_by_token_[token.value];
    if (plan_.clocks_are_trusted() && nothing_forgotten() && grant < last_grant_written_) {
        complain("a late write with token " + std::to_string(token.value) + " was accepted");
    }
    last_grant_written_ = std::max(last_grant_written_, grant);
    largest_written_ = token;
}

quorum_contender::quorum_contender(quorum_stage& stage, quorum_referee& referee, std::uint32_t number,
                                   double rate,
                                   const std::vector<std::unique_ptr<quorum_member>>& members,
                                   network_quality quality, const contention_terms& terms)
    : stage_{stage},
      referee_{referee},
      number_{number},
      terms_{terms},
      process_{uneven_clock{rate}},
      owner_{.high = number + 1U, .low = 7, .sequence = 0},
      rounds_left_{terms.rounds} {
    std::vector<std::unique_ptr<engines::engine>> links;
    for (const auto& each : members) {
        links.push_back(std::make_unique<member_link>(stage_, *each, process_, quality));
    }
    const auto skew = stage_.between(0ms, 1s);
    engines::quorum_options options;
    options.restart_grace = terms.restart_grace;
    options.environment.now = [this] { return local(); };
    options.environment.wall_clock = [this, skew] {
        return epoch_microseconds + microseconds(local().time_since_epoch() + skew);
    };
    options.environment.random = [this] { return stage_.fraction(); };
    engine_ = engines::make_quorum(std::move(links), options);
    watch_ = engine_->offers().watching->watch(lock_under_test(), lock_kind::mutex, [this] {
        if (waiting_) {
            wait_and_retry(stage_.between(0us, 300us));
        }
    });
}

clock::duration quorum_contender::lasting() const noexcept {
    return terms_.ttl - terms_.ttl / 100 - 2ms;
}

engines::call quorum_contender::by_now() const noexcept {
    return {local() + request_timeout, engines::caller::must_not_block};
}

void quorum_contender::later(clock::duration delay, std::function<void()> what) {
    stage_.after(delay, [this, step = step_, what = std::move(what)] {
        if (step != step_) {
            return;
        }
        if (process_.awake_at > stage_.now()) {
            later(process_.awake_at - stage_.now(), what);
        } else {
            what();
        }
    });
}

void quorum_contender::start() {
    later(stage_.between(0ms, 20ms), [this] { next_round(); });
}

void quorum_contender::pause(clock::duration how_long) {
    process_.awake_at = std::max(process_.awake_at, stage_.now() + how_long);
}

void quorum_contender::next_round() {
    ++step_;
    if (rounds_left_-- == 0) {
        return;
    }
    ++owner_.sequence;
    round_began_ = stage_.now();
    attempt();
}

void quorum_contender::attempt() {
    ++step_;
    waiting_ = false;
    sent_ = local();
    engine_->acquire({.name = lock_under_test(),
                      .owner = owner_,
                      .ttl = terms_.ttl,
                      .token_count = 1 + stage_.pick(3)},
                     by_now(), [this, step = step_](const engines::acquire_reply& reply) {
                         if (step == step_) {
                             answered(reply);
                         }
                     });
}

void quorum_contender::answered(const engines::acquire_reply& reply) {
    using outcome = engines::acquire_reply::outcome;
    if (reply.result == outcome::granted) {
        hold(reply);
        return;
    }
    if (stage_.now() - round_began_ > patience) {
        give_up();
        return;
    }
    if (reply.result == outcome::busy) {
        const auto wait = reply.retry_after.count() > 0
                              ? std::min<clock::duration>(reply.retry_after, recheck)
                              : clock::duration{recheck};
        waiting_ = true;
        wait_and_retry(wait + stage_.between(0ms, 2ms));
    } else {
        wait_and_retry(stage_.between(20ms, 200ms));
    }
}

void quorum_contender::wait_and_retry(clock::duration how_long) {
    ++step_;
    later(how_long, [this] { attempt(); });
}

void quorum_contender::hold(const engines::acquire_reply& reply) {
    ++step_;
    valid_until_ = sent_ + lasting();
    token_ = reply.first_token;
    if (local() >= valid_until_) {
        release();
        return;
    }
    holding_ = true;
    referee_.granted(number_, token_, process_.time.truth_at(valid_until_));
    const auto work = stage_.between(0ms, terms_.calm ? terms_.ttl / 4 : terms_.ttl + terms_.ttl / 4);
    for (std::uint32_t writes = stage_.pick(3); writes > 0; --writes) {
        plan_write(stage_.between(0ms, work));
    }
    if (stage_.one_in(2)) {
        later(terms_.ttl / 3, [this] { renew(); });
    }
    later(work, [this] { let_go(); });
}

/// Looks at the lease, and writes. In between it may be paused for longer than the lease lasts.
void quorum_contender::plan_write(clock::duration after) {
    later(after, [this] {
        if (!believes()) {
            return;
        }
        const auto gap = stage_.one_in(4) ? stage_.between(1ms, 2 * terms_.ttl) : clock::duration{};
        pause(gap);
        stage_.after(gap, [this, token = token_] { referee_.written(token); });
    });
}

void quorum_contender::renew() {
    if (!believes()) {
        return;
    }
    const auto sent = local();
    engine_->renew({{.name = lock_under_test(), .owner = owner_, .ttl = terms_.ttl}}, by_now(),
                   [this, sent, step = step_](const std::vector<engines::renew_reply>& replies) {
                       using outcome = engines::renew_reply::outcome;
                       if (step != step_ || !believes()) {
                           return;
                       }
                       if (replies.front().result == outcome::renewed) {
                           valid_until_ = std::max(valid_until_, sent + lasting());
                           referee_.extended(number_, process_.time.truth_at(valid_until_));
                       } else if (replies.front().result == outcome::gone) {
                           let_go();
                       }
                   });
    later(terms_.ttl / 3, [this] { renew(); });
}

void quorum_contender::let_go() {
    if (std::exchange(holding_, false)) {
        referee_.ended(number_);
    }
    release();
}

void quorum_contender::give_up() {
    if (terms_.calm) {
        referee_.complain("client " + std::to_string(number_) + " never got the lock");
    }
    release();
}

void quorum_contender::release() {
    ++step_;
    engine_->release({.name = lock_under_test(), .owner = owner_}, by_now(),
                     [this, step = step_](const engines::release_reply&) {
                         if (step == step_) {
                             later(stage_.between(0ms, 5ms), [this] { next_round(); });
                         }
                     });
}

}  // namespace holdfast::testing::sim
