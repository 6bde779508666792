#include "counter.hpp"

#include <boost/json.hpp>

namespace flash_sale {

namespace {

constexpr std::string_view sale_path{"/redis/distributed/lock/inventory/sale"};

std::string request_of(std::string_view query) {
    constexpr std::string_view name{"request="};
    const auto at = query.find(name);
    if (at == std::string_view::npos) {
        return {};
    }
    const auto value = query.substr(at + name.size());
    return std::string{value.substr(0, value.find('&'))};
}

/// For the time that somebody is served.
class presence {
public:
    explicit presence(metrics& figures) : figures_{figures} { figures_.entered(); }
    presence(const presence&) = delete;
    presence& operator=(const presence&) = delete;
    ~presence() { figures_.left(); }

private:
    metrics& figures_;
};

}  // namespace

reply counter::answer(const std::string& target) {
    const auto mark = target.find('?');
    const auto path = target.substr(0, mark);
    if (path == "/health") {
        return {.body = R"({"status":"up"})"};
    }
    if (path == "/metrics") {
        return {.type = "text/plain; version=0.0.4", .body = figures_.text()};
    }
    if (!path.starts_with(sale_path)) {
        return {404, "text/plain", "try " + std::string{sale_path} + "\n"};
    }
    auto name = path.size() > sale_path.size() ? path.substr(sale_path.size() + 1) : options_.strategy;
    auto request = mark == std::string::npos ? std::string{} : request_of(target.substr(mark + 1));
    if (request.empty()) {
        request = "anonymous-" + std::to_string(options_.port) + "-" + std::to_string(++anonymous_);
    }
    return sell(name, request);
}

strategy* counter::find(const std::string& name) const {
    for (const auto& one : strategies_) {
        if (one.name == name) {
            return one.way.get();
        }
    }
    return nullptr;
}

reply counter::sell(const std::string& name, const std::string& request) {
    auto* const way = find(name);
    if (way == nullptr) {
        return {404, "text/plain", "no strategy is called " + name + " here\n"};
    }
    const presence during{figures_};
    const auto start = std::chrono::steady_clock::now();
    boost::json::object words{{"port", options_.port}};
    try {
        const auto done = way->sell(request);
        figures_.count(name, done.result, std::chrono::steady_clock::now() - start);
        words["outcome"] = to_string(done.result);
        words["remaining"] = done.remaining;
        if (done.result == sale::outcome::sold) {
            words["order"] = done.order;
        }
        const unsigned status = done.result == sale::outcome::try_again ? 503 : 200;
        return {status, "application/json", boost::json::serialize(words)};
    } catch (const std::exception& error) {
        figures_.count_failure(name);
        words["outcome"] = "failed";
        words["error"] = error.what();
        return {503, "application/json", boost::json::serialize(words)};
    }
}

}  // namespace flash_sale
