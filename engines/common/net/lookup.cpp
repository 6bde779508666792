#include <algorithm>
#include <atomic>
#include <common/net/lookup.hpp>
#include <common/quiet_thread.hpp>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <threading/bell.hpp>

#include <netdb.h>
#include <poll.h>
#include <sys/un.h>

namespace holdfast::engines::net {

namespace {

/// The most look-ups that may hang, left behind, at one time.
constexpr int most_lookups = 64;
std::atomic<int> lookups_under_way{0};

struct task {
    std::string host;
    std::string port;
    threading::bell finished;
    std::mutex mutex;
    endpoints result;
};

endpoints resolve(const std::string& host, const std::string& port, int flags) {
    ::addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = flags | AI_NUMERICSERV;
    ::addrinfo* list = nullptr;
    endpoints result;
    if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &list); error != 0) {
        result.error = {errc::store_unavailable,
                        host + ": the host name is not known (" + ::gai_strerror(error) + ")"};
        return result;
    }
    const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> owner{list, &::freeaddrinfo};
    for (const ::addrinfo* each = list; each != nullptr; each = each->ai_next) {
        endpoint& added = result.found.emplace_back();
        std::memcpy(&added.address, each->ai_addr, each->ai_addrlen);
        added.length = each->ai_addrlen;
    }
    return result;
}

endpoints socket_file(const std::string& path) {
    ::sockaddr_un place{};
    place.sun_family = AF_UNIX;
    if (path.size() >= sizeof place.sun_path) {
        return {.found = {},
                .error = {errc::bad_configuration, path + ": too long for a socket's path"}};
    }
    std::memcpy(place.sun_path, path.data(), path.size());
    endpoint only;
    std::memcpy(&only.address, &place, sizeof place);
    only.length = sizeof place;
    return {.found = {only}, .error = {}};
}

void start(const std::shared_ptr<task>& shared) {
    ++lookups_under_way;
    try {
        quiet_thread([shared] {
            endpoints result = resolve(shared->host, shared->port, 0);
            {
                const std::lock_guard lock{shared->mutex};
                shared->result = std::move(result);
            }
            --lookups_under_way;
            shared->finished.ring();
        }).detach();
    } catch (const std::system_error&) {
        --lookups_under_way;
        shared->result.error = {errc::store_unavailable, "no thread for a name look-up can be started"};
        shared->finished.ring();
    }
}

}  // namespace

endpoints look_up(const node_address& server, clock::time_point deadline, const waiting& wait) {
    if (!server.path.empty()) {
        return socket_file(server.path);
    }
    const std::string port = std::to_string(server.port);
    if (endpoints numeric = resolve(server.host, port, AI_NUMERICHOST); !numeric.error) {
        return numeric;
    }
    if (lookups_under_way.load() >= most_lookups) {
        return {.found = {}, .error = {errc::store_unavailable, "too many name look-ups hang"}};
    }
    const auto shared = std::make_shared<task>();
    shared->host = server.host;
    shared->port = port;
    start(shared);
    if (!wait(shared->finished.descriptor(), POLLIN, deadline)) {
        return {.found = {},
                .error = {errc::store_unavailable,
                          server.host + ": the name look-up did not answer in time"}};
    }
    const std::lock_guard lock{shared->mutex};
    return std::move(shared->result);
}

}  // namespace holdfast::engines::net
