#include "stage.hpp"

namespace lab {

std::string address_of(std::uint16_t port) {
    return "redis://127.0.0.1:" + std::to_string(port);
}

bool is_there(const redis_server& server, const std::string& key) {
    return server.ask({"EXISTS", key}).integer == 1;
}

int plain_stock(const redis_server& server) {
    return std::stoi(server.cli({"GET", stock_name}));
}

std::int64_t ttl_of(const redis_server& server, const std::string& key) {
    return server.ask({"PTTL", key}).integer;
}

void wait_until_gone(const redis_server& server, const std::string& key) {
    wait_until("the end of " + key, [&] { return !is_there(server, key); });
}

std::int64_t calls_of(const redis_server& server, std::string_view command) {
    const auto all = server.cli({"INFO", "commandstats"});
    const auto field = "cmdstat_" + std::string{command} + ":calls=";
    const auto at = all.find(field);
    return at == std::string::npos ? 0 : std::stoll(all.substr(at + field.size()));
}

void wait_for_waiter(holdfast::client& client) {
    wait_until("somebody who waits", [&] { return client.inspect(lock_name).waiters.value_or(0) > 0; });
}

pair_of_servers::pair_of_servers() {
    auto connection = master().connect();
    connection.command({"SET", stock_name, "10"});
    if (connection.command({"WAIT", "1", "5000"}).integer != 1) {
        throw std::runtime_error{"the replica does not follow its master"};
    }
}

pair_of_servers::~pair_of_servers() {
    // A stopped server cannot be asked to end.
    if (stopped_) {
        replica().resume();
    }
}

void pair_of_servers::cut_link() {
    // Stopped first: it would come back at once.
    replica().pause();
    stopped_ = true;
    master().client_kill("replica");
}

void pair_of_servers::promote() {
    master().kill_hard();
    replica().resume();
    stopped_ = false;
    replica().cli({"REPLICAOF", "NO", "ONE"});
}

void event_count::on_event(const holdfast::event& news) noexcept {
    const std::scoped_lock lock{guard_};
    count_ += news.kind == kind_ ? 1U : 0U;
}

std::uint32_t event_count::value() const {
    const std::scoped_lock lock{guard_};
    return count_;
}

}  // namespace lab
