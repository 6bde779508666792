#include <redis/topology/cluster.hpp>

#include <common/quiet_thread.hpp>
#include <redis/errors.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace holdfast::engines::redis {

cluster::cluster(const address& given, events told, cluster_use use)
    : address_{given}, told_{std::move(told)}, use_{use} {}

cluster::~cluster() {
    guard lock{mutex_};
    closed_.store(true);
    lock.unlock();
    wake_.notify_all();
    gate_.close();
    if (thread_.joinable()) {
        thread_.join();
    }
    // From here on nobody but us knows the servers; their completions find the gate closed.
    lock.lock();
    const auto nodes = std::move(nodes_);
    const auto former = std::move(former_);
    lock.unlock();
}

void cluster::send(std::uint16_t slot, lane path, connection::encode encoder, call terms,
                   connection::done finished) {
    const auto sent = std::make_shared<routed_request>(
        routed_request{slot, path, std::move(encoder), terms.deadline, std::move(finished)});
    if (terms.from == caller::may_block) {
        dispatch(sent, terms);
        return;
    }
    // Completions may ask on while we are being destroyed.
    bool open = false;
    gate_.pass([&] {
        open = true;
        dispatch(sent, terms);
    });
    if (!open) {
        sent->finished({{}, {errc::shut_down, "shutdown was called, or the client was destroyed"}});
    }
}

void cluster::dispatch(const std::shared_ptr<routed_request>& sent, call terms) {
    std::shared_ptr<node> to;
    {
        const guard lock{mutex_};
        if (const auto* owner = map_.owner(sent->slot)) {
            to = node_at(*owner);
        } else {
            want_refresh();
            if (const auto other = any_master()) {
                to = node_at(*other);
            }
        }
    }
    if (!to) {
        sent->finished({{},
                        {errc::store_unavailable, "no server of the cluster is responsible for slot " +
                                                      std::to_string(sent->slot)}});
        return;
    }
    go(sent, to, manner::plain, terms);
}

/// A slot may have an owner that the map does not name. Every master knows it, and answers with MOVED,
/// or with an error if nobody serves the slot.
std::optional<node_address> cluster::any_master() const {
    for (const auto& each : servers_to_ask()) {
        if (map_.is_master(each)) {
            return each;
        }
    }
    return std::nullopt;
}

void cluster::go(const std::shared_ptr<routed_request>& sent, const std::shared_ptr<node>& to,
                 manner style, call terms) {
    const node& at = *to;  // outlives its completions
    if (style == manner::plain) {
        to->send(
            sent->path,
            [sent](std::string& out, const server_facts& server) { return sent->encode(out, server); },
            terms,
            [this, sent, &at](connection::result result) { returned(sent, at, std::move(result)); });
        return;
    }
    to->send(
        sent->path,
        [sent](std::string& out, const server_facts& server) {
            std::string plain;
            const auto replies = sent->encode(plain, server);
            return connection::expected{append_with_asking(out, plain, replies.ignored).value_or(0)};
        },
        terms,
        [this, sent, &at](connection::result result) {
            drop_asking(result.replies);
            returned(sent, at, std::move(result));
        });
}

void cluster::returned(const std::shared_ptr<routed_request>& sent, const node& from,
                       connection::result result) {
    if (result.error) {
        if (!closed_.load()) {
            if (result.error.code == errc::shut_down) {
                // Not we, only this server is done with.
                result.error = {errc::outcome_unknown, from.where().text() + " is a master no more"};
            }
            const guard lock{mutex_};
            want_refresh();
        }
        sent->finished(std::move(result));
        return;
    }
    if (result.replies.empty()) {
        sent->finished({{}, senseless_answer("a command")});
        return;
    }
    const value& first = result.replies.front();
    if (const auto elsewhere = read_redirect(first, from.where())) {
        follow(sent, *elsewhere, first);
        return;
    }
    failure reason = not_now(first);
    const auto code = first.error_code();
    if (code == "MOVED" || code == "ASK") {
        reason = {errc::store_unavailable, from.where().text() + " does not say where: " + first.text};
    }
    if (!reason) {
        sent->finished(std::move(result));
        return;
    }
    if (code != "LOADING") {
        const guard lock{mutex_};
        want_refresh();
    }
    sent->finished({{}, std::move(reason)});
}

/// Nothing was executed, so it may be sent again.
void cluster::follow(const std::shared_ptr<routed_request>& sent, const redirect& target,
                     const value& answer) {
    if (target.type == redirect::kind::moved) {
        moved(target.slot, target.server);
    }
    if (++sent->hops > most_hops || clock::now() >= sent->deadline) {
        const auto* const when = sent->hops > most_hops ? "the servers send us round in circles ("
                                                        : "the slot has moved, and the time is over (";
        sent->finished({{}, {errc::store_unavailable, when + answer.text + ")"}});
        return;
    }
    bool open = false;
    gate_.pass([&] {
        open = true;
        go_on(sent, target);
    });
    if (!open) {
        sent->finished({{}, {errc::shut_down, "shutdown was called, or the client was destroyed"}});
    }
}

/// Runs in a completion, so the next request must not block.
void cluster::go_on(const std::shared_ptr<routed_request>& sent, const redirect& target) {
    const call terms{sent->deadline, caller::must_not_block};
    if (target.type == redirect::kind::moved) {
        dispatch(sent, terms);
        return;
    }
    guard lock{mutex_};
    const auto to = node_at(target.server);
    lock.unlock();
    go(sent, to, manner::asking, terms);
}

std::vector<std::uint16_t> cluster::a_slot_of_each_master() {
    const guard lock{mutex_};
    return map_.a_slot_of_each();
}

std::size_t cluster::slots_of_nobody() {
    const guard lock{mutex_};
    return map_.slots_of_nobody();
}

std::uint32_t cluster::replicas_of(std::uint16_t slot) const {
    const guard lock{mutex_};
    const auto* const owner = map_.owner(slot);
    return owner == nullptr ? 0 : replicas_seen(*owner);
}

store_instance cluster::instance_of(std::uint16_t slot) const {
    const guard lock{mutex_};
    const auto* const owner = map_.owner(slot);
    const auto found = owner == nullptr ? nodes_.end() : nodes_.find(*owner);
    return found == nodes_.end() ? store_instance{} : found->second->instance();
}

std::uint64_t cluster::commands_sent() const {
    const guard lock{mutex_};
    auto sum = commands_before_;
    for (const auto& [name, server] : nodes_) {
        sum += server->commands_sent();
    }
    for (const auto& each : former_) {
        sum += each.server->commands_sent();
    }
    return sum;
}

failure cluster::connect(clock::time_point deadline) {
    if (address_.connection.database != 0) {
        return {errc::bad_configuration, "a cluster has no database but 0"};
    }
    auto survey = first_survey(deadline);
    if (survey.error) {
        return std::move(survey.error);
    }
    if (!survey.well && use_ == cluster_use::locks) {
        return {errc::store_unavailable, "the cluster says that it is down (cluster_state:fail)"};
    }
    const bool sharded = address_.sharded == address::sharding::on ||
                         (address_.sharded == address::sharding::automatic && survey.sharded);
    publish_command_ = sharded ? "spublish" : "publish";
    const guard lock{mutex_};
    channels_.use_sharded_channels(sharded);
    epoch_ = survey.epoch;
    adopt(std::move(survey.map));
    refresh_.begin(clock::now());
    thread_ = quiet_thread([this] { background(); });
    return {};
}

/// The first map that a server of the address has. Each server has its share of the time.
cluster_survey cluster::first_survey(clock::time_point deadline) {
    cluster_survey best;
    best.error = {errc::bad_configuration, "the address names no server"};
    auto left = static_cast<clock::rep>(address_.nodes.size());
    bool refused = false;
    for (const auto& each : address_.nodes) {
        const auto now = clock::now();
        auto survey = survey_by_visit(each, address_.connection, now + (deadline - now) / left--);
        if (!survey.error && survey.well) {
            return survey;
        }
        // An error that the operator can correct says more than that a server is not there.
        const bool tells = !survey.error || survey.error.code != errc::store_unavailable;
        if (!refused || tells) {
            best = std::move(survey);
        }
        refused = refused || tells;
    }
    return best;
}

void cluster::want_refresh() {
    if (refresh_.want(clock::now())) {
        wake_.notify_all();
    }
}

void cluster::moved(std::uint16_t slot, const node_address& to) {
    const guard lock{mutex_};
    const auto* const before = map_.owner(slot);
    if (before != nullptr && !most_replicas_.contains(to)) {
        most_replicas_[to] = replicas_seen(*before);
    }
    map_.set_owner(slot, to);
    want_refresh();
}

void cluster::lost(const node_address& server) {
    const guard lock{mutex_};
    losses_[server] = clock::now();
    want_refresh();
}

void cluster::background() {
    guard lock{mutex_};
    while (!closed_.load()) {
        auto due = refresh_.due();
        if (!former_.empty()) {
            due = std::min(due, clock::now() + farewell);
        }
        if (!channels_.empty()) {
            due = std::min(due, clock::now() + cluster_channels::patience);
        }
        wake_.wait_until(lock, due);
        channels_.look_for_deaf_servers();
        if (!closed_.load() && clock::now() >= refresh_.due()) {
            refresh(lock);
        }
        dismiss(lock);
    }
}

void cluster::refresh(guard& lock) {
    refresh_.begin(clock::now());
    auto survey = newest_survey(lock);
    if (survey && !closed_.load()) {
        epoch_ = survey->epoch;
        adopt(std::move(survey->map));
    } else if (!survey) {
        want_refresh();
    }
}

/// The first map that is as new as ours, or else the newest.
std::optional<cluster_survey> cluster::newest_survey(guard& lock) {
    std::optional<cluster_survey> best;
    const auto deadline = clock::now() + 4 * survey_patience;
    int opinions = 0;
    for (const auto& each : servers_to_ask()) {
        auto survey = ask(each, lock);
        if (closed_.load()) {
            return std::nullopt;
        }
        opinions += survey.error ? 0 : 1;
        if (!survey.error && (!best || survey.epoch > best->epoch)) {
            best = std::move(survey);
        }
        const bool sure = best && best->epoch >= epoch_ && best->well;
        if (sure || opinions == most_opinions || clock::now() >= deadline) {
            break;
        }
    }
    return best;
}

/// Masters, replicas, and the servers of the address. Those in doubt come last.
std::vector<node_address> cluster::servers_to_ask() const {
    std::vector<node_address> result;
    std::set<node_address> seen;
    const auto add = [&](const std::vector<node_address>& some) {
        for (const auto& each : some) {
            if (seen.insert(each).second) {
                result.push_back(each);
            }
        }
    };
    add(map_.masters());
    add(map_.replicas());
    add(address_.nodes);
    std::stable_partition(result.begin(), result.end(),
                          [&](const node_address& each) { return !losses_.contains(each); });
    return result;
}

cluster_survey cluster::ask(const node_address& address, guard& lock) {
    const auto known = nodes_.find(address);
    const auto server = known == nodes_.end() ? nullptr : known->second;
    lock.unlock();
    const auto deadline = clock::now() + survey_patience;
    auto survey = server ? survey_through(*server, deadline)
                         : survey_by_visit(address, address_.connection, deadline);
    lock.lock();
    if (survey.error) {
        losses_[address] = clock::now();
    } else {
        losses_.erase(address);
    }
    return survey;
}

/// With the lock held.
void cluster::adopt(slot_map map) {
    const auto before = std::exchange(map_, std::move(map));
    inherit_replicas(before);
    const auto now = clock::now();
    std::erase_if(nodes_, [&](auto& each) {
        if (map_.is_master(each.first)) {
            return false;
        }
        former_.push_back({std::move(each.second), now, false});
        return true;
    });
    const auto known = servers_to_ask();
    std::erase_if(losses_, [&](const auto& each) {
        return std::find(known.begin(), known.end(), each.first) == known.end();
    });
    channels_.attach_all();
}

/// A replica that took its master's place should have as many replicas as that one had.
void cluster::inherit_replicas(const slot_map& before) {
    std::map<node_address, std::uint32_t> most;
    for (const auto slot : map_.a_slot_of_each()) {
        const auto& master = *map_.owner(slot);
        const auto* const last = most_replicas_.contains(master) ? &master : before.owner(slot);
        most[master] = std::max(map_.replicas_of(master), last == nullptr ? 0 : replicas_seen(*last));
    }
    most_replicas_ = std::move(most);
}

std::uint32_t cluster::replicas_seen(const node_address& master) const {
    const auto known = most_replicas_.find(master);
    const auto found = nodes_.find(master);
    return std::max(known == most_replicas_.end() ? 0 : known->second,
                    found == nodes_.end() ? 0 : found->second->replicas());
}

/// Nobody can begin to use a server that is not in `nodes_`. So a server that only `former_` refers to
/// stays unused.
void cluster::dismiss(guard& lock) {
    std::vector<std::shared_ptr<node>> silent;
    std::vector<std::shared_ptr<node>> unused;
    const auto now = clock::now();
    std::erase_if(former_, [&](former_node& each) {
        if (now - each.since < farewell) {
            return false;
        }
        if (!std::exchange(each.reset, true)) {
            silent.push_back(each.server);
            return false;
        }
        if (each.server.use_count() != 1) {
            return false;
        }
        commands_before_ += each.server->commands_sent();
        unused.push_back(std::move(each.server));
        return true;
    });
    if (silent.empty() && unused.empty()) {
        return;
    }
    lock.unlock();
    for (const auto& each : silent) {
        each->reset({errc::store_unavailable, each->where().text() + " is a master no more"});
    }
    silent.clear();
    unused.clear();
    lock.lock();
}

std::shared_ptr<node> cluster::node_at(const node_address& server) {
    auto& found = nodes_[server];
    if (!found) {
        found = std::make_shared<node>(
            server, address_.connection,
            node::events{.pubsub = {.heard = told_.heard,
                                    .subscribed = told_.subscribed,
                                    .moved_away =
                                        [this, server](const std::string& channel) {
                                            moved_away(channel, server);
                                        },
                                    .refused = told_.refused},
                         .lost = [this, server](const failure&) { lost(server); },
                         .clustered = true});
    }
    return found;
}

void cluster::subscribe(const channel_place& place) {
    const guard lock{mutex_};
    if (channels_.empty()) {
        wake_.notify_all();  // from now on it looks after channels
    }
    channels_.subscribe(place);
}

void cluster::unsubscribe(const channel_place& place) {
    const guard lock{mutex_};
    channels_.unsubscribe(place);
}

bool cluster::subscribed(const channel_place& place) const {
    const guard lock{mutex_};
    return channels_.subscribed(place);
}

/// Where the slot's master was given up as deaf, channels are elsewhere, and nobody attends there.
void cluster::attend(std::uint16_t slot, idle_thread& attendant,
                     const std::function<bool()>& others_listen) {
    std::shared_ptr<node> home;
    {
        const guard lock{mutex_};
        if (const auto* const owner = map_.owner(slot); owner != nullptr) {
            const auto found = nodes_.find(*owner);
            home = found == nodes_.end() ? nullptr : found->second;
        }
    }
    if (home) {
        home->pubsub().attend(attendant, others_listen);
    }
}

subscriber* cluster::known_subscriber(const node_address& server) const {
    const auto found = nodes_.find(server);
    return found == nodes_.end() ? nullptr : &found->second->pubsub();
}

subscriber& cluster::subscriber_at(const node_address& server) {
    return node_at(server)->pubsub();
}

void cluster::moved_away(const std::string& channel, const node_address& from) {
    const guard lock{mutex_};
    channels_.moved_away(channel, from);
}

std::unique_ptr<router> make_cluster(const address& given, router::events told, cluster_use use) {
    return std::make_unique<cluster>(given, std::move(told), use);
}

}  // namespace holdfast::engines::redis
