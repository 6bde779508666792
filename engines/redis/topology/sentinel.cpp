#include <redis/topology/node.hpp>
#include <redis/topology/router.hpp>
#include <redis/topology/sentinel_agreement.hpp>
#include <redis/topology/sentinel_informer.hpp>

#include <common/callback_gate.hpp>
#include <redis/topology/redirect.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

namespace holdfast::engines::redis {

namespace {

using namespace std::chrono_literals;

/// The server that the sentinels call the master, for as long as they do.
struct reign {
    reign(node_address where, const connection_settings& settings, node::events told)
        : server{std::move(where), settings, std::move(told)} {}

    node server;
    /// Nothing more is sent to it, even if it answers: it may not know yet what has happened.
    std::atomic<bool> over{false};
};

/// A master that sentinels watch over.
///
/// Their word counts, not the server's: what to do is decided by `master_choice`, on every word of
/// theirs. They are asked when a connection is lost or refused, when the master says that it is one no
/// more, and every few seconds; and they tell of a new master by themselves.
class sentinel final : public router {
public:
    sentinel(const address& given, events told, clock::duration patience)
        : address_{given}, told_{std::move(told)}, choice_{patience} {
        views_.resize(address_.nodes.size());
        silences_.resize(address_.nodes.size());
    }
    sentinel(const sentinel&) = delete;
    sentinel& operator=(const sentinel&) = delete;
    ~sentinel() override;

    [[nodiscard]] failure connect(clock::time_point deadline) override;
    void send(std::uint16_t, lane path, connection::encode encoder, call terms,
              connection::done finished) override;
    [[nodiscard]] std::vector<std::uint16_t> a_slot_of_each_master() override { return {0}; }
    void check_sentinels(clock::time_point until,
                         std::function<void(std::vector<sentinel_checkup>)> done) override;

    void subscribe(const channel_place& place) override;
    void unsubscribe(const channel_place& place) override;
    [[nodiscard]] bool subscribed(const channel_place& place) const override;
    void attend(std::uint16_t, idle_thread& visitor,
                const std::function<bool()>& others_listen) override;
    [[nodiscard]] const std::string& publish_command() const noexcept override {
        static const std::string command{"publish"};
        return command;
    }
    [[nodiscard]] bool clustered() const noexcept override { return false; }
    [[nodiscard]] std::uint32_t replicas_of(std::uint16_t) const override;
    [[nodiscard]] store_instance instance_of(std::uint16_t) const override;
    [[nodiscard]] std::uint64_t commands_sent() const override;

private:
    /// How long to wait for the other sentinels once more than half of them have answered.
    static constexpr auto second_opinions = 300ms;

    void start_informers();
    [[nodiscard]] failure find_master(clock::time_point deadline);
    [[nodiscard]] failure reach_master(clock::time_point deadline);
    [[nodiscard]] failure no_master_reason() const;
    void heard_from(std::size_t which, std::optional<sentinel_view> view, failure reason);
    [[nodiscard]] bool all_reported() const;
    [[nodiscard]] std::shared_ptr<reign> follow();
    [[nodiscard]] std::shared_ptr<reign> current() const;
    void bury();
    void ask_sentinels();

    void pass_on(lane path, connection::encode encoder, call terms, connection::done finished);
    [[nodiscard]] connection::result judge(const reign* from, connection::result result);
    void demoted(const reign* former);

    const address address_;
    const events told_;
    callback_gate gate_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<bool> closed_{false};
    /// What each sentinel said last, and why it says nothing. Neither: it has not been heard of yet.
    std::vector<std::optional<sentinel_view>> views_;
    std::vector<failure> silences_;
    /// Enough has been heard to follow what the sentinels say.
    bool informed_{};
    master_choice choice_;
    std::shared_ptr<reign> master_;
    /// Those before, until nobody uses them any more.
    std::vector<std::shared_ptr<reign>> former_;
    std::set<std::string> wanted_;
    std::uint32_t most_replicas_{};
    std::uint64_t commands_before_{};

    std::vector<std::unique_ptr<sentinel_informer>> informers_;
};

sentinel::~sentinel() {
    closed_.store(true);
    gate_.close();
    informers_.clear();
    // From here on nobody but us knows the servers; their completions find the gate closed.
    std::unique_lock lock{mutex_};
    const auto last = std::move(master_);
    const auto former = std::move(former_);
    lock.unlock();
}

failure sentinel::connect(clock::time_point deadline) {
    start_informers();
    if (failure reason = find_master(deadline)) {
        return reason;
    }
    return reach_master(deadline);
}

void sentinel::start_informers() {
    connection_settings settings = address_.connection;
    settings.login = address_.sentinel_login;
    settings.database = 0;
    for (std::size_t index = 0; index < address_.nodes.size(); ++index) {
        informers_.push_back(std::make_unique<sentinel_informer>(
            address_.nodes[index], settings, address_.service,
            sentinel_informer::events{
                .told = [this, index](const sentinel_view& view) { heard_from(index, view, {}); },
                .silent = [this, index](const failure& reason) { heard_from(index, {}, reason); }}));
    }
}

bool sentinel::all_reported() const {
    for (std::size_t index = 0; index < views_.size(); ++index) {
        if (!views_[index] && !silences_[index]) {
            return false;
        }
    }
    return true;
}

failure sentinel::find_master(clock::time_point deadline) {
    std::unique_lock lock{mutex_};
    // One that answers sooner than the others may be the one that was cut off together with an old
    // master. Half of the time is left for those who are alone in the end.
    const auto now = clock::now();
    const auto more_than_half = [this] {
        const auto heard = std::count_if(views_.begin(), views_.end(),
                                         [](const auto& view) { return view.has_value(); });
        return 2 * static_cast<std::size_t>(heard) > views_.size();
    };
    changed_.wait_until(lock, now + (deadline - now) / 2,
                        [&] { return more_than_half() || all_reported(); });
    changed_.wait_until(lock, deadline, [&] { return newest_view(views_) || all_reported(); });
    changed_.wait_until(lock, std::min(deadline, clock::now() + second_opinions),
                        [&] { return all_reported(); });
    informed_ = true;
    static_cast<void>(follow());
    return master_ ? failure{} : no_master_reason();
}

failure sentinel::no_master_reason() const {
    for (const errc telling : {errc::unauthorised, errc::bad_configuration, errc::store_error}) {
        for (const failure& each : silences_) {
            if (each.code == telling) {
                return each;
            }
        }
    }
    failure result{errc::store_unavailable, "no sentinel says who the master is"};
    for (const failure& each : silences_) {
        if (each) {
            result.detail += "; " + each.detail;
        }
    }
    return result;
}

/// A failover may be under way: what fails now may work with the next master.
failure sentinel::reach_master(clock::time_point deadline) {
    constexpr auto pause = 100ms;
    for (;;) {
        const auto to = current();
        failure reason = to->server.connect(deadline);
        if (!reason || reason.code == errc::unauthorised || reason.code == errc::bad_configuration) {
            return reason;
        }
        ask_sentinels();
        std::unique_lock lock{mutex_};
        const auto now = clock::now();
        if (now >= deadline) {
            return reason;
        }
        changed_.wait_until(lock, std::min(deadline, now + pause), [&] { return master_ != to; });
    }
}

std::shared_ptr<reign> sentinel::current() const {
    const std::lock_guard lock{mutex_};
    return master_;
}

void sentinel::heard_from(std::size_t which, std::optional<sentinel_view> view, failure reason) {
    std::shared_ptr<reign> deposed;
    {
        const std::lock_guard lock{mutex_};
        views_[which] = std::move(view);
        silences_[which] = std::move(reason);
        if (informed_ && !closed_.load()) {
            deposed = follow();
        }
    }
    changed_.notify_all();
    if (deposed) {
        deposed->server.reset(
            {errc::store_unavailable, deposed->server.where().text() + " is the master no more"});
        deposed.reset();
    }
    bury();
}

/// With the lock held. Whoever is the master no more.
std::shared_ptr<reign> sentinel::follow() {
    using presence = master_choice::presence;
    const bool gone = master_ && !master_->server.reachable();
    if (!choice_.consider(views_, gone ? presence::gone : presence::there, clock::now())) {
        return {};
    }
    auto next =
        std::make_shared<reign>(choice_.current()->master, address_.connection,
                                node::events{.pubsub = {.heard = told_.heard,
                                                        .subscribed = told_.subscribed,
                                                        .moved_away = {},
                                                        .refused = told_.refused},
                                             .lost = [this](const failure&) { ask_sentinels(); }});
    for (const auto& channel : wanted_) {
        next->server.pubsub().subscribe(channel, channel_style::classic);
    }
    auto deposed = std::exchange(master_, std::move(next));
    if (deposed) {
        deposed->over.store(true);
        most_replicas_ = std::max(most_replicas_, deposed->server.replicas());
        former_.push_back(deposed);
    }
    return deposed;
}

/// Nobody can begin to use a former master, so one that only we know of stays so.
void sentinel::bury() {
    std::vector<std::shared_ptr<reign>> unused;
    const std::lock_guard lock{mutex_};
    std::erase_if(former_, [&](std::shared_ptr<reign>& each) {
        if (each.use_count() != 1) {
            return false;
        }
        commands_before_ += each->server.commands_sent();
        unused.push_back(std::move(each));
        return true;
    });
}

void sentinel::ask_sentinels() {
    gate_.pass([this] {
        for (const auto& each : informers_) {
            each->ask();
        }
    });
}

void sentinel::check_sentinels(clock::time_point until,
                               std::function<void(std::vector<sentinel_checkup>)> done) {
    struct checkups {
        explicit checkups(std::size_t count) : all(count), missing{count} {}

        std::vector<sentinel_checkup> all;
        std::atomic<std::size_t> missing;
        std::function<void(std::vector<sentinel_checkup>)> done;
    };
    const auto into = std::make_shared<checkups>(address_.nodes.size());
    into->done = std::move(done);
    bool open = false;
    gate_.pass([&] {
        open = true;
        for (std::size_t index = 0; index < informers_.size(); ++index) {
            informers_[index]->check(until, [into, index](sentinel_checkup said) {
                into->all[index] = std::move(said);
                if (into->missing.fetch_sub(1) == 1) {
                    into->done(std::move(into->all));
                }
            });
        }
    });
    if (!open) {
        into->done({});
    }
}

void sentinel::send(std::uint16_t, lane path, connection::encode encoder, call terms,
                    connection::done finished) {
    if (terms.from == caller::may_block) {
        pass_on(path, std::move(encoder), terms, std::move(finished));
        return;
    }
    // Completions may ask on while we are being destroyed.
    bool open = false;
    gate_.pass([&] {
        open = true;
        pass_on(path, std::move(encoder), terms, std::move(finished));
    });
    if (!open) {
        finished({{}, {errc::shut_down, "shutdown was called, or the client was destroyed"}});
    }
}

void sentinel::pass_on(lane path, connection::encode encoder, call terms, connection::done finished) {
    const auto to = current();
    if (!to) {
        finished({{}, {errc::store_unavailable, "no master is known"}});
        return;
    }
    to->server.send(
        path,
        [at = to.get(), encoder = std::move(encoder)](std::string& out, const server_facts& server) {
            return at->over.load() ? connection::expected{} : encoder(out, server);
        },
        terms,
        [this, at = to.get(), done = std::move(finished)](connection::result result) {
            done(judge(at, std::move(result)));
        });
}

connection::result sentinel::judge(const reign* from, connection::result result) {
    const auto deposed = [&] { return from->server.where().text() + " is the master no more"; };
    if (result.error) {
        if (result.error.code == errc::shut_down && !closed_.load()) {
            // Not we, only this server is done with.
            result.error = {errc::outcome_unknown, deposed()};
        }
        return result;
    }
    if (result.replies.empty()) {
        return {{}, {errc::store_unavailable, deposed() + "; nothing was sent to it"}};
    }
    const value& first = result.replies.front();
    if (first.error_code() == "READONLY") {
        demoted(from);
    }
    if (failure reason = not_now(first)) {
        return {{}, std::move(reason)};
    }
    return result;
}

/// Looks who is there now before anything else is sent, and who should be.
void sentinel::demoted(const reign* former) {
    gate_.pass([&] {
        const auto now = current();
        if (now.get() == former) {
            now->server.reset(
                {errc::store_unavailable, now->server.where().text() + " became a replica"});
        }
    });
    ask_sentinels();
}

void sentinel::subscribe(const channel_place& place) {
    const std::lock_guard lock{mutex_};
    wanted_.insert(place.channel);
    if (master_) {
        master_->server.pubsub().subscribe(place.channel, channel_style::classic);
    }
}

void sentinel::unsubscribe(const channel_place& place) {
    const std::lock_guard lock{mutex_};
    wanted_.erase(place.channel);
    if (master_) {
        master_->server.pubsub().unsubscribe(place.channel);
    }
}

bool sentinel::subscribed(const channel_place& place) const {
    const std::lock_guard lock{mutex_};
    return master_ && master_->server.pubsub().active(place.channel);
}

void sentinel::attend(std::uint16_t, idle_thread& visitor, const std::function<bool()>& others_listen) {
    std::unique_lock lock{mutex_};
    const auto now = master_;
    lock.unlock();
    if (now) {
        now->server.pubsub().attend(visitor, others_listen);
    }
}

std::uint32_t sentinel::replicas_of(std::uint16_t) const {
    const std::lock_guard lock{mutex_};
    return master_ ? std::max(most_replicas_, master_->server.replicas()) : most_replicas_;
}

store_instance sentinel::instance_of(std::uint16_t) const {
    const std::lock_guard lock{mutex_};
    return master_ ? master_->server.instance() : store_instance{};
}

std::uint64_t sentinel::commands_sent() const {
    const std::lock_guard lock{mutex_};
    auto sum = commands_before_ + (master_ ? master_->server.commands_sent() : 0);
    for (const auto& each : former_) {
        sum += each->server.commands_sent();
    }
    return sum;
}

}  // namespace

std::unique_ptr<router> make_sentinel(const address& given, router::events told,
                                      clock::duration patience) {
    return std::make_unique<sentinel>(given, std::move(told), patience);
}

}  // namespace holdfast::engines::redis
