#include <redis/topology/node.hpp>

#include <redis/resp/info.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::engines::redis {

namespace {

/// The server's uptime is the difference of two times in whole seconds, so it may be up to a second
/// more than is true. It is never taken for older than it is.
[[nodiscard]] store_instance instance_in(const value& info) {
    store_instance instance;
    if (info.type != value::kind::text) {
        return instance;
    }
    instance.id = info_field(info.text, "run_id");
    const auto uptime = info_field(info.text, "uptime_in_seconds");
    std::int64_t seconds{};
    const char* const end = uptime.data() + uptime.size();
    if (!uptime.empty() && std::from_chars(uptime.data(), end, seconds).ec == std::errc{}) {
        instance.since = clock::now() - std::chrono::seconds{std::max<std::int64_t>(seconds - 1, 0)};
    }
    return instance;
}

}  // namespace

node::node(node_address where, connection_settings settings, events told)
    : where_{std::move(where)},
      settings_{std::move(settings)},
      told_{std::move(told)},
      subscriber_{where_, settings_, told_.pubsub},
      common_{make_connection(router::lane::common)} {}

std::unique_ptr<connection> node::make_connection(router::lane path) {
    const bool common = path == router::lane::common;
    return std::make_unique<connection>(
        where_, settings_, std::vector<std::vector<std::string>>{{"ROLE"}, {"INFO", "server"}},
        connection::events{[this, common](const std::vector<value>& replies) {
                               failure reason = greeted(replies);
                               if (common && !reason) {
                                   reachable_.store(true);
                               }
                               return reason;
                           },
                           [this, common](const failure& reason) {
                               if (common) {
                                   reachable_.store(false);
                               }
                               if (told_.lost) {
                                   told_.lost(reason);
                               }
                           }});
}

failure node::greeted(const std::vector<value>& replies) {
    if (replies.size() > 1) {
        auto instance = instance_in(replies[1]);
        // Valkey calls it so.
        const bool cluster = info_field(replies[1].text, "redis_mode") == "cluster" ||
                             info_field(replies[1].text, "server_mode") == "cluster";
        if (!told_.clustered && cluster) {
            return {errc::bad_configuration,
                    where_.text() + " is a server of a cluster; use redis+cluster://" + where_.text()};
        }
        const std::lock_guard lock{guard_};
        instance_ = std::move(instance);
    }
    return replies.empty() ? failure{} : check_role(replies[0]);
}

/// ROLE answers ["master", offset, [replica, …]] or ["slave", host, port, …]. Where the user may not
/// ask, the first write tells.
failure node::check_role(const value& answer) {
    if (answer.type != value::kind::array || answer.items.empty()) {
        return {};
    }
    const auto& role = answer.items;
    if (role[0].text == "slave") {
        const auto master = role.size() > 2 ? role[1].text + ":" + std::to_string(role[2].integer)
                                            : std::string{"another server"};
        return {errc::store_unavailable,
                where_.text() + " is a replica of " + master + "; locks must be taken at the master"};
    }
    if (role[0].text == "master" && role.size() > 2) {
        const auto now = static_cast<std::uint32_t>(role[2].items.size());
        replicas_.store(std::max(replicas_.load(), now));
    }
    return {};
}

connection& node::of(router::lane path) {
    if (path == router::lane::common) {
        return *common_;
    }
    const std::lock_guard lock{guard_};
    if (!confirmed_) {
        confirmed_ = make_connection(path);
    }
    return *confirmed_;
}

failure node::connect(clock::time_point deadline) {
    return common_->connect(deadline);
}

void node::send(router::lane path, connection::encode encoder, call terms, connection::done finished) {
    of(path).send(std::move(encoder), terms, std::move(finished));
}

void node::reset(const failure& reason) {
    common_->reset(reason);
    std::unique_lock lock{guard_};
    connection* const confirmed = confirmed_.get();
    lock.unlock();  // completions run in there
    if (confirmed != nullptr) {
        confirmed->reset(reason);
    }
}

store_instance node::instance() const {
    const std::lock_guard lock{guard_};
    return instance_;
}

std::uint64_t node::commands_sent() const {
    const std::lock_guard lock{guard_};
    return common_->commands_sent() + (confirmed_ ? confirmed_->commands_sent() : 0);
}

}  // namespace holdfast::engines::redis
