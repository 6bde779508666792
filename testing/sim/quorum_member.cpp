#include <quorum_member.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::testing::sim {

namespace {

class quiet_subscription final : public engines::subscription {
public:
    explicit quiet_subscription(std::shared_ptr<std::function<void()>> hint) : hint_{std::move(hint)} {}
    quiet_subscription(const quiet_subscription&) = delete;
    quiet_subscription& operator=(const quiet_subscription&) = delete;
    ~quiet_subscription() override { *hint_ = {}; }
    [[nodiscard]] bool active() const noexcept override { return true; }

private:
    std::shared_ptr<std::function<void()>> hint_;
};

template <class Reply>
[[nodiscard]] Reply failed(errc code) {
    Reply reply;
    reply.error = {code, "simulated"};
    return reply;
}

}  // namespace

quorum_member::quorum_member(quorum_stage& stage, std::size_t number, double rate,
                             clock::duration wall_offset)
    : stage_{stage},
      number_{number},
      clock_{rate},
      wall_offset_{wall_offset},
      // Members that have been there for long: their counters are anywhere below the time.
      store_{std::make_unique<engines::memory::store_model>(epoch_microseconds + stage.pick(1000))},
      since_{stage.now() - 24h} {
    id_ = "member " + std::to_string(number_);
}

std::uint64_t quorum_member::wall_microseconds() const noexcept {
    const auto shown = local().time_since_epoch() + wall_offset_;
    return epoch_microseconds +
           static_cast<std::uint64_t>(
               std::chrono::duration_cast<std::chrono::microseconds>(shown).count());
}

void quorum_member::restart(clock::duration down_for, memory data) {
    if (!up_) {
        return;
    }
    up_ = false;
    if (data == memory::lost) {
        // Seeded with the time, as the Redis engine does it.
        store_ = std::make_unique<engines::memory::store_model>(wall_microseconds());
    }
    stage_.after(down_for, [this] { come_up(); });
}

void quorum_member::come_up() {
    up_ = true;
    since_ = stage_.now();
    id_ = "member " + std::to_string(number_) + ", life " + std::to_string(++lives_);
}

void quorum_member::notify() {
    if (store_->take_hints().empty()) {
        return;
    }
    for (auto* const each : links_) {
        each->send_hint();
    }
}

member_link::member_link(quorum_stage& stage, quorum_member& member, const client_process& client,
                         network_quality quality)
    : stage_{stage},
      member_{member},
      client_{client},
      quality_{quality},
      address_{member.id()},
      answered_by_{seen_by_client()} {
    promises_.reach = scope::fleet;
    promises_.tokens = engines::fencing::strict;
    promises_.shared = true;
    promises_.minimum_ttl = std::chrono::milliseconds{1};
    member.add(this);
}

engines::store_instance member_link::seen_by_client() const {
    return {member_.id(), client_.time.shows(member_.since())};
}

clock::duration member_link::delay() {
    if (quality_.late_one_in != 0 && stage_.one_in(quality_.late_one_in)) {
        return stage_.between(1ms, 400ms);
    }
    return stage_.between(50us, 2ms);
}

void member_link::deliver(clock::time_point when, std::function<void()> what) {
    stage_.at(when, [this, what = std::move(what)] {
        if (client_.awake_at > stage_.now()) {
            deliver(client_.awake_at, what);
        } else {
            what();
        }
    });
}

template <class Reply, class Work, class Fail>
void member_link::exchange(engines::call how, engines::completion<Reply> done, Work work, Fail fail) {
    struct letter {
        engines::completion<Reply> done;
        bool answered{};
    };
    const auto mine = std::make_shared<letter>(letter{std::move(done)});
    const auto finish = [mine](Reply reply) {
        if (!std::exchange(mine->answered, true)) {
            std::exchange(mine->done, {})(std::move(reply));
        }
    };
    deliver(client_.time.truth_at(how.deadline),
            [finish, fail] { finish(fail(errc::outcome_unknown)); });
    if (quality_.lost_one_in != 0 && stage_.one_in(quality_.lost_one_in)) {
        return;
    }
    last_request_ = std::max(last_request_, stage_.now() + delay());
    const auto arrives = [this, finish, work = std::move(work), fail] {
        if (!member_.up()) {
            deliver(stage_.now() + delay(), [finish, fail] { finish(fail(errc::store_unavailable)); });
            return;
        }
        auto reply = work();
        const auto who = seen_by_client();
        member_.notify();
        if (quality_.lost_one_in != 0 && stage_.one_in(quality_.lost_one_in)) {
            return;
        }
        last_reply_ = std::max(last_reply_, stage_.now() + delay());
        deliver(last_reply_, [this, finish, who, reply = std::move(reply)] {
            answered_by_ = who;
            finish(reply);
        });
    };
    stage_.at(last_request_, [this, arrives] {
        // A member that stands still answers when it goes on.
        if (member_.awake_at() > stage_.now()) {
            stage_.at(member_.awake_at(), arrives);
        } else {
            arrives();
        }
    });
}

void member_link::acquire(engines::acquire_request request, engines::call how,
                          engines::completion<engines::acquire_reply> done) {
    exchange<engines::acquire_reply>(
        how, std::move(done),
        [this, request = std::move(request)] {
            return member_.store().acquire(request, member_.local(), {});
        },
        failed<engines::acquire_reply>);
}

void member_link::acquire_all(std::vector<engines::acquire_request> all, engines::call how,
                              engines::completion<engines::acquire_all_reply> done) {
    exchange<engines::acquire_all_reply>(
        how, std::move(done),
        [this, all = std::move(all)] { return member_.store().acquire_all(all, member_.local(), {}); },
        failed<engines::acquire_all_reply>);
}

void member_link::renew(std::vector<engines::renew_request> batch, engines::call how,
                        engines::completion<std::vector<engines::renew_reply>> done) {
    const auto size = batch.size();
    exchange<std::vector<engines::renew_reply>>(
        how, std::move(done),
        [this, batch = std::move(batch)] {
            std::vector<engines::renew_reply> replies;
            for (const auto& each : batch) {
                replies.push_back(member_.store().renew(each, member_.local()));
            }
            return replies;
        },
        [size](errc code) {
            return std::vector<engines::renew_reply>(size, failed<engines::renew_reply>(code));
        });
}

void member_link::release(engines::release_request request, engines::call how,
                          engines::completion<engines::release_reply> done) {
    exchange<engines::release_reply>(
        how, std::move(done),
        [this, request = std::move(request)] {
            return member_.store().release(request, member_.local());
        },
        failed<engines::release_reply>);
}

std::unique_ptr<engines::subscription> member_link::watch(std::string, lock_kind,
                                                          std::function<void()> hint) {
    std::erase_if(hints_, [](const auto& one) { return !*one; });
    hints_.push_back(std::make_shared<std::function<void()>>(std::move(hint)));
    return std::make_unique<quiet_subscription>(hints_.back());
}

void member_link::send_hint() {
    if (hints_.empty() || (quality_.lost_one_in != 0 && stage_.one_in(quality_.lost_one_in))) {
        return;
    }
    deliver(stage_.now() + delay(), [hints = hints_] {
        for (const auto& one : hints) {
            // A copy: it may end the watch that it belongs to.
            if (const auto tell = *one) {
                tell();
            }
        }
    });
}

}  // namespace holdfast::testing::sim
