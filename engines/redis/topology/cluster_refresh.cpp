#include <redis/topology/cluster.hpp>

#include <common/quiet_thread.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace holdfast::engines::redis {

failure cluster::connect(clock::time_point deadline) {
    if (where_.connection.database != 0) {
        return {errc::bad_configuration, "a cluster has no database but 0"};
    }
    auto survey = first_survey(deadline);
    if (survey.error) {
        return std::move(survey.error);
    }
    if (!survey.well && use_ == cluster_use::locks) {
        return {errc::store_unavailable, "the cluster says that it is down (cluster_state:fail)"};
    }
    sharded_ = where_.sharded == address::sharding::on ||
               (where_.sharded == address::sharding::automatic && survey.sharded);
    publish_command_ = sharded_ ? "spublish" : "publish";
    const guard lock{mutex_};
    epoch_ = survey.epoch;
    adopt(std::move(survey.map));
    refreshed_ = clock::now();
    refresh_at_ = refreshed_ + usual_pause;
    thread_ = quiet_thread([this] { background(); });
    return {};
}

/// The first of the given servers that knows. Each has its share of the time.
cluster_survey cluster::first_survey(clock::time_point deadline) {
    cluster_survey best;
    best.error = {errc::bad_configuration, "the address names no server"};
    auto left = static_cast<clock::rep>(where_.nodes.size());
    bool refused = false;
    for (const auto& each : where_.nodes) {
        const auto now = clock::now();
        auto survey = survey_by_visit(each, where_.connection, now + (deadline - now) / left--);
        if (!survey.error && survey.well) {
            return survey;
        }
        // What the operator has to do something about is worth more than that somebody is not there.
        const bool tells = !survey.error || survey.error.code != errc::store_unavailable;
        if (!refused || tells) {
            best = std::move(survey);
        }
        refused = refused || tells;
    }
    return best;
}

void cluster::want_refresh() {
    const auto now = clock::now();
    const bool calm = now - refreshed_ > 4 * longest_pause;
    if (refresh_at_ <= refreshed_ + longest_pause) {
        return;  // is under way, or soon will be
    }
    if (calm) {
        pauses_.succeeded();
    }
    const auto pause =
        calm ? clock::duration::zero() : std::min<clock::duration>(pauses_.next(), longest_pause);
    refresh_at_ = std::min(refresh_at_, std::max(now, refreshed_ + pause));
    wake_.notify_all();
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

void cluster::lost(const node_address& who) {
    const guard lock{mutex_};
    losses_[who] = clock::now();
    want_refresh();
}

void cluster::background() {
    guard lock{mutex_};
    while (!closed_.load()) {
        auto due = refresh_at_;
        if (!former_.empty()) {
            due = std::min(due, clock::now() + farewell);
        }
        if (!channels_.empty()) {
            due = std::min(due, clock::now() + channel_patience);
        }
        wake_.wait_until(lock, due);
        look_for_deaf_ones();
        if (!closed_.load() && clock::now() >= refresh_at_) {
            refresh(lock);
        }
        dismiss(lock);
    }
}

void cluster::refresh(guard& lock) {
    // Whoever finds out now that the map is wrong wants one that is fetched from now on.
    refreshed_ = clock::now();
    refresh_at_ = refreshed_ + usual_pause;
    auto survey = newest_survey(lock);
    if (survey && !closed_.load()) {
        epoch_ = survey->epoch;
        adopt(std::move(survey->map));
    } else if (!survey) {
        want_refresh();
    }
}

/// The first that has missed nothing; the best there is if all have.
std::optional<cluster_survey> cluster::newest_survey(guard& lock) {
    std::optional<cluster_survey> best;
    const auto deadline = clock::now() + 4 * survey_patience;
    int opinions = 0;
    for (const auto& each : whom_to_ask()) {
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

/// Masters, replicas, and whom the address names; those in doubt last.
std::vector<node_address> cluster::whom_to_ask() const {
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
    add(where_.nodes);
    std::stable_partition(result.begin(), result.end(),
                          [&](const node_address& each) { return !losses_.contains(each); });
    return result;
}

cluster_survey cluster::ask(const node_address& whom, guard& lock) {
    const auto known = nodes_.find(whom);
    const auto server = known == nodes_.end() ? nullptr : known->second;
    lock.unlock();
    const auto deadline = clock::now() + survey_patience;
    auto survey =
        server ? survey_through(*server, deadline) : survey_by_visit(whom, where_.connection, deadline);
    lock.lock();
    if (survey.error) {
        losses_[whom] = clock::now();
    } else {
        losses_.erase(whom);
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
    const auto known = whom_to_ask();
    std::erase_if(losses_, [&](const auto& each) {
        return std::find(known.begin(), known.end(), each.first) == known.end();
    });
    attach_all();
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

/// Nobody can begin to use a server that is not in `nodes_`, so one that only we know of stays so.
void cluster::dismiss(guard& lock) {
    std::vector<std::shared_ptr<node>> silent;
    std::vector<std::shared_ptr<node>> unused;
    const auto now = clock::now();
    std::erase_if(former_, [&](former_node& each) {
        if (now - each.since < farewell) {
            return false;
        }
        if (!std::exchange(each.reset, true)) {
            silent.push_back(each.who);
            return false;
        }
        if (each.who.use_count() != 1) {
            return false;
        }
        commands_before_ += each.who->commands_sent();
        unused.push_back(std::move(each.who));
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

std::shared_ptr<node> cluster::node_at(const node_address& where) {
    auto& found = nodes_[where];
    if (!found) {
        found = std::make_shared<node>(
            where, where_.connection,
            node::events{.pubsub = {.heard = told_.heard,
                                    .subscribed = told_.subscribed,
                                    .moved_away =
                                        [this, where](const std::string& channel) {
                                            moved_away(channel, where);
                                        },
                                    .refused = told_.refused},
                         .lost = [this, where](const failure&) { lost(where); },
                         .clustered = true});
    }
    return found;
}

}  // namespace holdfast::engines::redis
