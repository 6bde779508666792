#include <redis/topology/cluster.hpp>

#include <redis/errors.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::engines::redis {

cluster::cluster(const address& where, events told, cluster_use use)
    : where_{where}, told_{std::move(told)}, use_{use} {}

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

void cluster::send(std::uint16_t slot, lane which, connection::encode what, call how,
                   connection::done finished) {
    const auto sent = std::make_shared<errand>(
        errand{slot, which, std::move(what), how.deadline, std::move(finished)});
    if (how.from == caller::may_block) {
        dispatch(sent, how);
        return;
    }
    // Completions may ask on while we are being destroyed.
    bool open = false;
    gate_.pass([&] {
        open = true;
        dispatch(sent, how);
    });
    if (!open) {
        sent->finished({{}, {errc::shut_down, "shutdown was called, or the client was destroyed"}});
    }
}

void cluster::dispatch(const std::shared_ptr<errand>& what, call how) {
    std::shared_ptr<node> to;
    {
        const guard lock{mutex_};
        if (const auto* owner = map_.owner(what->slot)) {
            to = node_at(*owner);
        } else {
            want_refresh();
            if (const auto other = whom_to_ask_about_slots()) {
                to = node_at(*other);
            }
        }
    }
    if (!to) {
        what->finished({{},
                        {errc::store_unavailable, "no server of the cluster is responsible for slot " +
                                                      std::to_string(what->slot)}});
        return;
    }
    go(what, to, manner::plain, how);
}

/// A slot may have an owner that the map does not name. Every master knows, and answers with MOVED, or
/// that nobody serves the slot.
std::optional<node_address> cluster::whom_to_ask_about_slots() const {
    for (const auto& each : whom_to_ask()) {
        if (map_.is_master(each)) {
            return each;
        }
    }
    return std::nullopt;
}

void cluster::go(const std::shared_ptr<errand>& what, const std::shared_ptr<node>& to, manner how_asked,
                 call how) {
    const node& at = *to;  // outlives its completions
    if (how_asked == manner::plain) {
        to->send(
            what->which,
            [what](std::string& out, const server_facts& server) { return what->what(out, server); },
            how,
            [this, what, &at](connection::result result) { returned(what, at, std::move(result)); });
        return;
    }
    to->send(
        what->which,
        [what](std::string& out, const server_facts& server) {
            std::string plain;
            const auto replies = what->what(plain, server);
            return connection::expected{append_with_asking(out, plain, replies.ignored).value_or(0)};
        },
        how,
        [this, what, &at](connection::result result) {
            drop_asking(result.replies);
            returned(what, at, std::move(result));
        });
}

void cluster::returned(const std::shared_ptr<errand>& what, const node& from,
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
        what->finished(std::move(result));
        return;
    }
    if (result.replies.empty()) {
        what->finished({{}, senseless_answer("a command")});
        return;
    }
    const value& first = result.replies.front();
    if (const auto elsewhere = read_redirect(first, from.where())) {
        follow(what, *elsewhere, first);
        return;
    }
    failure why = not_now(first);
    const auto code = first.error_code();
    if (code == "MOVED" || code == "ASK") {
        why = {errc::store_unavailable, from.where().text() + " does not say where: " + first.text};
    }
    if (!why) {
        what->finished(std::move(result));
        return;
    }
    if (code != "LOADING") {
        const guard lock{mutex_};
        want_refresh();
    }
    what->finished({{}, std::move(why)});
}

/// Nothing was executed, so it may be sent again.
void cluster::follow(const std::shared_ptr<errand>& what, const redirect& where, const value& answer) {
    if (where.what == redirect::kind::moved) {
        moved(where.slot, where.where);
    }
    if (++what->hops > most_hops || clock::now() >= what->deadline) {
        const auto* const when = what->hops > most_hops ? "the servers send us round in circles ("
                                                        : "the slot has moved, and the time is over (";
        what->finished({{}, {errc::store_unavailable, when + answer.text + ")"}});
        return;
    }
    bool open = false;
    gate_.pass([&] {
        open = true;
        go_on(what, where);
    });
    if (!open) {
        what->finished({{}, {errc::shut_down, "shutdown was called, or the client was destroyed"}});
    }
}

/// We are in a completion: whatever comes now must not wait.
void cluster::go_on(const std::shared_ptr<errand>& what, const redirect& where) {
    const call how{what->deadline, caller::must_not_block};
    if (where.what == redirect::kind::moved) {
        dispatch(what, how);
        return;
    }
    guard lock{mutex_};
    const auto to = node_at(where.where);
    lock.unlock();
    go(what, to, manner::asking, how);
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
    for (const auto& [where, server] : nodes_) {
        sum += server->commands_sent();
    }
    for (const auto& each : former_) {
        sum += each.who->commands_sent();
    }
    return sum;
}

std::unique_ptr<router> make_cluster(const address& where, router::events told, cluster_use use) {
    return std::make_unique<cluster>(where, std::move(told), use);
}

}  // namespace holdfast::engines::redis
