#include <nodes_server.hpp>

#include <algorithm>

namespace holdfast::testing::sim {

using engines::queue_node;
using engines::session_id;

engines::session_reply nodes_server::open(std::chrono::milliseconds ttl) {
    const auto granted = std::min(ttl, layout_.longest_ttl);
    const session_id id = ++revision_;
    sessions_[id] = {granted, stage_.now() + granted};
    stage_.after(granted, [this, id] { expire(id); });
    return {.session = id, .ttl = granted};
}

engines::session_reply nodes_server::keep_alive(session_id id) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) {
        return {.error = {errc::lost, "no such session"}};
    }
    found->second.ends = stage_.now() + found->second.ttl;
    stage_.after(found->second.ttl, [this, id] { expire(id); });
    return {.session = id, .ttl = found->second.ttl};
}

/// Not before its time, but a while later at times.
void nodes_server::expire(session_id id) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end() || stage_.now() < found->second.ends) {
        return;
    }
    if (stage_.one_in(4)) {
        stage_.after(stage_.between(1ms, 300ms), [this, id] { expire(id); });
    } else {
        end(id);
    }
}

void nodes_server::close(session_id id) {
    if (sessions_.contains(id)) {
        end(id);
    }
}

void nodes_server::end(session_id id) {
    sessions_.erase(id);
    for (const auto& [name, queue] : queues_) {
        std::vector<queue_node> gone;
        std::copy_if(queue.begin(), queue.end(), std::back_inserter(gone),
                     [&](const queue_node& node) { return node.session == id; });
        for (const auto& node : gone) {
            remove(name, node);
        }
    }
}

engines::create_reply nodes_server::create(const engines::create_request& request) {
    engines::create_reply reply;
    if (!sessions_.contains(request.session)) {
        reply.error = {errc::lost, "no such session"};
        return reply;
    }
    auto& queue = queues_[request.name];
    const auto same = std::find_if(queue.begin(), queue.end(), [&](const queue_node& node) {
        return node.claim.label == request.claim.label;
    });
    if (same != queue.end()) {
        reply.created = *same;
    } else if (queue.empty() || !request.only_if_empty) {
        const auto place = ++revision_;
        auto id = std::to_string(request.session);
        const bool taken = std::any_of(queue.begin(), queue.end(),
                                       [&](const queue_node& node) { return node.id == id; });
        if (!layout_.reuses_ids || taken) {
            id += '-' + std::to_string(place);
        }
        queue.push_back({id, place, place, request.session, request.claim});
        reply.created = queue.back();
    }
    if (layout_.tells_queue || !reply.created) {
        reply.queue = shown(request.name, request.claim.label);
    }
    return reply;
}

std::vector<queue_node> nodes_server::shown(const std::string& name, const std::string& label) const {
    const auto found = queues_.find(name);
    auto queue = found == queues_.end() ? std::vector<queue_node>{} : found->second;
    for (auto& node : queue) {
        if (layout_.tells_little && node.claim.label != label) {
            node.token = 0;
            node.session = 0;
        }
    }
    return queue;
}

engines::queue_reply nodes_server::read(const std::string& name, const std::string& label) const {
    return {.queue = shown(name, label)};
}

void nodes_server::remove(const std::string& name, const queue_node& node) {
    const auto gone = std::erase_if(queues_[name], [&](const queue_node& each) {
        return each.id == node.id && each.place == node.place;
    });
    if (gone > 0) {
        told_(name, node);
    }
}

bool nodes_server::has(const std::string& name, const queue_node& node) const {
    const auto found = queues_.find(name);
    return found != queues_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](const queue_node& each) { return each.place == node.place; });
}

void nodes_server::restart() {
    for (auto& [id, one] : sessions_) {
        one.ends = stage_.now() + one.ttl;
        stage_.after(one.ttl, [this, id = id] { expire(id); });
    }
}

std::vector<session_id> nodes_server::sessions() const {
    std::vector<session_id> all;
    for (const auto& [id, one] : sessions_) {
        all.push_back(id);
    }
    return all;
}

}  // namespace holdfast::testing::sim
