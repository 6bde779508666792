#include <algorithm>
#include <cerrno>
#include <common/net/stream.hpp>
#include <common/standard_streams.hpp>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::engines::net {

using namespace std::chrono_literals;
using status = io_result::status;

namespace {

failure cannot_connect(const std::string& name, int error) {
    std::string words = name + ": " + std::generic_category().message(error);
    switch (error) {
        case ECONNREFUSED:
        case ENOENT:
        case ETIMEDOUT:
        case EHOSTUNREACH:
        case ECONNRESET:
            words += "; is the server up?";
            break;
        default:
            break;
    }
    return {errc::store_unavailable, std::move(words)};
}

failure broken(int error) {
    return {errc::store_unavailable, std::generic_category().message(error)};
}

std::string no_tls_there(const plain_protocol& plain) {
    std::string words{tls_session::no_tls_there};
    words.append("; ").append(plain.advice).append(", or give the port that it listens on with TLS");
    return words;
}

template <class Value>
void set_option(int socket, int level, int option, const Value& value) noexcept {
    // An option that the system does not know is no reason not to connect.
    static_cast<void>(::setsockopt(socket, level, option, &value, sizeof value));
}

/// A connection whose other end has vanished must not look alive for hours.
void notice_death(int socket) noexcept {
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 5);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 10'000U);
}

void make_blocking(int socket) noexcept {
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
}

struct connected_socket {
    descriptor socket;
    failure error;
};

connected_socket connect_to(const endpoint& server, const std::string& name, clock::time_point deadline,
                            const waiting& wait) {
    const int family = server.address.ss_family;
    descriptor made{
        keep_off_standard_streams(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
    if (!made) {
        return {.socket = {}, .error = cannot_connect(name, errno)};
    }
    if (family != AF_UNIX) {
        notice_death(made.get());
    }
    const auto* address = reinterpret_cast<const ::sockaddr*>(&server.address);
    if (::connect(made.get(), address, server.length) == 0) {
        return {.socket = std::move(made), .error = {}};
    }
    if (errno != EINPROGRESS) {
        return {.socket = {}, .error = cannot_connect(name, errno)};
    }
    if (!wait(made.get(), POLLOUT, deadline)) {
        return {
            .socket = {},
            .error = {errc::store_unavailable, name + ": no connection in time; is the server up?"}};
    }
    int error = 0;
    ::socklen_t size = sizeof error;
    ::getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        return {.socket = {}, .error = cannot_connect(name, error)};
    }
    return {.socket = std::move(made), .error = {}};
}

connected_socket connect_to_any(const std::vector<endpoint>& choice, const std::string& name,
                                clock::time_point deadline, const waiting& wait) {
    connected_socket last{.socket = {},
                          .error = {errc::store_unavailable, name + ": the host has no address"}};
    for (std::size_t index = 0; index < choice.size(); ++index) {
        // An address that does not answer must leave time for the next ones.
        const auto share = (deadline - clock::now()) / static_cast<int>(choice.size() - index);
        last = connect_to(choice[index], name, clock::now() + share, wait);
        if (last.socket) {
            break;
        }
    }
    return last;
}

bool answers_without_tls(const plain_protocol& plain, const std::vector<endpoint>& choice,
                         const std::string& name, clock::time_point deadline, const waiting& wait) {
    const connected_socket asked = connect_to_any(choice, name, deadline, wait);
    char first{};
    return asked.socket &&
           ::send(asked.socket.get(), plain.request.data(), plain.request.size(),
                  MSG_NOSIGNAL | MSG_DONTWAIT) > 0 &&
           wait(asked.socket.get(), POLLIN, deadline) &&
           ::recv(asked.socket.get(), &first, 1, MSG_DONTWAIT) == 1 &&
           plain.first_characters.find(first) != std::string_view::npos;
}

}  // namespace

stream::opened stream::open(const node_address& server, const std::optional<tls_settings>& tls,
                            const plain_protocol& plain, clock::time_point deadline,
                            const waiting& wait) {
    const std::string name = server.text();
    std::unique_ptr<tls_session> session;
    if (tls) {
        session = std::make_unique<tls_session>(*tls, server.host);
        if (const failure& error = session->unusable()) {
            return {.connected = {}, .error = {error.code, name + ": " + error.detail}};
        }
    }
    endpoints choice = look_up(server, deadline, wait);
    if (choice.error) {
        return {.connected = {}, .error = std::move(choice.error)};
    }
    connected_socket made = connect_to_any(choice.found, name, deadline, wait);
    if (!made.socket) {
        return {.connected = {}, .error = std::move(made.error)};
    }
    auto connected = std::make_unique<stream>(std::move(made.socket), name);
    if (!tls) {
        return {.connected = std::move(connected), .error = {}};
    }
    session->attach(connected->socket());
    connected->tls_ = std::move(session);
    const auto began = clock::now();
    const auto quarter = (deadline - began) / 4;
    const auto for_question = std::min<clock::duration>(200ms, quarter);
    failure error;
    // The server is asked without TLS soon, and again at the end: a busy server may answer late.
    for (const auto until :
         {began + std::min<clock::duration>(300ms, quarter), deadline - for_question}) {
        error = connected->shake_hands(plain, until, wait);
        const bool timed_out = clock::now() >= until;
        if (error.code != errc::store_unavailable) {
            break;
        }
        if (answers_without_tls(plain, choice.found, name, clock::now() + for_question, wait)) {
            error = {errc::bad_configuration, name + ": " + no_tls_there(plain)};
            break;
        }
        if (!timed_out) {
            break;
        }
    }
    return {.connected = error ? nullptr : std::move(connected), .error = error};
}

bool stream::answers_tls(const node_address& server, clock::time_point deadline, const waiting& wait) {
    tls_settings unverified;
    unverified.verify = false;
    tls_session session{unverified, server.host};
    const endpoints choice = look_up(server, deadline, wait);
    if (session.unusable() || choice.error) {
        return false;
    }
    const connected_socket asked = connect_to_any(choice.found, server.text(), deadline, wait);
    if (!asked.socket) {
        return false;
    }
    session.attach(asked.socket.get());
    for (;;) {
        const io_result step = session.handshake();
        if (step.outcome == status::again) {
            if (!wait(asked.socket.get(), step.events, deadline)) {
                return false;
            }
            continue;
        }
        // A refusal is an answer, too: this server demands a client certificate.
        return step.outcome == status::done || (step.error.code == errc::bad_configuration &&
                                                step.error.detail != tls_session::no_tls_there);
    }
}

stream::stream(descriptor connected, std::string name)
    : socket_{std::move(connected)}, name_{std::move(name)} {
    // Blocking, with a limit: a read then takes one system call, not two. All other calls say
    // MSG_DONTWAIT.
    make_blocking(socket_.get());
    const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(longest_read);
    set_option(socket_.get(), SOL_SOCKET, SO_RCVTIMEO,
               ::timeval{.tv_sec = 0, .tv_usec = static_cast<::suseconds_t>(limit.count())});
}

failure stream::shake_hands(const plain_protocol& plain, clock::time_point deadline,
                            const waiting& wait) {
    for (;;) {
        io_result step = tls_->handshake();
        if (step.outcome == status::done) {
            return {};
        }
        if (step.outcome == status::closed) {
            step.error.detail += " during the TLS handshake; does it speak TLS there?";
        }
        if (step.error.detail == tls_session::no_tls_there) {
            step.error.detail = no_tls_there(plain);
        }
        if (step.lost()) {
            return named(std::move(step)).error;
        }
        if (!wait(socket_.get(), step.events, deadline)) {
            return {
                errc::store_unavailable,
                name_ + ": no answer to the TLS handshake in time; does the server speak TLS there?"};
        }
    }
}

io_result stream::named(io_result result) const {
    if (result.lost()) {
        result.error.detail = name_ + ": " + result.error.detail;
    }
    return result;
}

io_result stream::read_plain(std::span<char> into, int flags) {
    const auto got = ::recv(socket_.get(), into.data(), into.size(), flags);
    if (got > 0) {
        return {.outcome = status::done, .bytes = static_cast<std::size_t>(got), .error = {}};
    }
    if (got == 0) {
        return {.outcome = status::closed,
                .error = {errc::store_unavailable, name_ + ": the server closed the connection"}};
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        return {.outcome = status::again, .events = POLLIN, .error = {}};
    }
    return named({.outcome = status::failed, .error = broken(errno)});
}

io_result stream::read_now(std::span<char> into) {
    if (!tls_) {
        return read_plain(into, MSG_DONTWAIT);
    }
    const std::lock_guard lock{tls_mutex_};
    return named(tls_->read(into));
}

io_result stream::read_some(std::span<char> into, clock::time_point until, clock::time_point now) {
    const auto limit = now + longest_read;
    if (!tls_ && until > limit) {
        return read_plain(into, 0);
    }
    io_result result = read_now(into);
    if (result.outcome == status::again &&
        wait_for(socket_.get(), result.events, std::min(until, limit))) {
        result = read_now(into);
    }
    return result;
}

io_result stream::write_now(std::span<const char> from) {
    if (tls_) {
        const std::lock_guard lock{tls_mutex_};
        return named(tls_->write(from));
    }
    const auto sent = ::send(socket_.get(), from.data(), from.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
        return {.outcome = status::done, .bytes = static_cast<std::size_t>(sent), .error = {}};
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        return {.outcome = status::again, .events = POLLOUT, .error = {}};
    }
    return named({.outcome = status::failed, .error = broken(errno)});
}

bool stream::stale() {
    if (tls_) {
        const std::lock_guard lock{tls_mutex_};
        return tls_->ended_or_data();
    }
    char one{};
    const auto got = ::recv(socket_.get(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
    return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void stream::shut() noexcept {
    ::shutdown(socket_.get(), SHUT_RDWR);
}

void stream::discard() noexcept {
    set_option(socket_.get(), SOL_SOCKET, SO_LINGER, ::linger{.l_onoff = 1, .l_linger = 0});
    // Resets the connection now. Some kernels refuse that while another thread waits in a read (EBUSY).
    // They reset it when the descriptor is closed. Called directly, because the thread sanitizer
    // assumes that ::connect makes a descriptor that no other thread uses.
    const ::sockaddr nowhere{.sa_family = AF_UNSPEC, .sa_data = {}};
    ::syscall(SYS_connect, socket_.get(), &nowhere, sizeof nowhere);
    shut();
}

}  // namespace holdfast::engines::net
