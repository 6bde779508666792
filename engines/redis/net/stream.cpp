#include <algorithm>
#include <cerrno>
#include <common/standard_streams.hpp>
#include <redis/net/stream.hpp>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::engines::redis {

using namespace std::chrono_literals;
using outcome = io_result::outcome;

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

template <class Value>
void set_option(int socket, int level, int option, const Value& value) noexcept {
    // An option that the system does not know is no reason not to connect.
    static_cast<void>(::setsockopt(socket, level, option, &value, sizeof value));
}

/// So that a connection whose other end vanished without a word does not look alive for hours.
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

connected_socket connect_to(const endpoint& where, const std::string& name, clock::time_point deadline,
                            const waiting& wait) {
    const int family = where.address.ss_family;
    descriptor made{
        keep_off_standard_streams(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
    if (!made) {
        return {.socket = {}, .error = cannot_connect(name, errno)};
    }
    if (family != AF_UNIX) {
        notice_death(made.get());
    }
    const auto* address = reinterpret_cast<const ::sockaddr*>(&where.address);
    if (::connect(made.get(), address, where.length) == 0) {
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
        // An address that does not answer leaves time for those after it.
        const auto share = (deadline - clock::now()) / static_cast<int>(choice.size() - index);
        last = connect_to(choice[index], name, clock::now() + share, wait);
        if (last.socket) {
            break;
        }
    }
    return last;
}

/// A server without TLS takes the TLS handshake for the beginning of a command, and waits for the rest
/// of it in silence: it has to be asked in its own words.
bool answers_without_tls(const std::vector<endpoint>& choice, const std::string& name,
                         clock::time_point deadline, const waiting& wait) {
    constexpr std::string_view question = "PING\r\n";
    const connected_socket asked = connect_to_any(choice, name, deadline, wait);
    char first{};
    return asked.socket &&
           ::send(asked.socket.get(), question.data(), question.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >
               0 &&
           wait(asked.socket.get(), POLLIN, deadline) &&
           ::recv(asked.socket.get(), &first, 1, MSG_DONTWAIT) == 1 && (first == '+' || first == '-');
}

}  // namespace

stream::opened stream::open(const node_address& where, const std::optional<tls_settings>& tls,
                            clock::time_point deadline, const waiting& wait) {
    const std::string name = where.text();
    std::unique_ptr<tls_session> session;
    if (tls) {
        session = std::make_unique<tls_session>(*tls, where.host);
        if (const failure& why = session->unusable()) {
            return {.connected = {}, .error = {why.code, name + ": " + why.detail}};
        }
    }
    endpoints choice = look_up(where, deadline, wait);
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
    // The question is put soon, and again at the end: a busy server may take its time to answer.
    for (const auto until :
         {began + std::min<clock::duration>(300ms, quarter), deadline - for_question}) {
        error = connected->shake_hands(until, wait);
        const bool timed_out = clock::now() >= until;
        if (error.code != errc::store_unavailable) {
            break;
        }
        if (answers_without_tls(choice.found, name, clock::now() + for_question, wait)) {
            error = {errc::bad_configuration, name + ": " + std::string{tls_session::no_tls_there}};
            break;
        }
        if (!timed_out) {
            break;
        }
    }
    return {.connected = error ? nullptr : std::move(connected), .error = error};
}

bool stream::answers_tls(const node_address& where, clock::time_point deadline, const waiting& wait) {
    tls_settings unverified;
    unverified.verify = false;
    tls_session session{unverified, where.host};
    const endpoints choice = look_up(where, deadline, wait);
    if (session.unusable() || choice.error) {
        return false;
    }
    const connected_socket asked = connect_to_any(choice.found, where.text(), deadline, wait);
    if (!asked.socket) {
        return false;
    }
    session.attach(asked.socket.get());
    for (;;) {
        const io_result step = session.handshake();
        if (step.what == outcome::again) {
            if (!wait(asked.socket.get(), step.wants, deadline)) {
                return false;
            }
            continue;
        }
        // A refusal is an answer, too: of a server that demands a certificate of ours.
        return step.what == outcome::done || (step.why.code == errc::bad_configuration &&
                                              step.why.detail != tls_session::no_tls_there);
    }
}

stream::stream(descriptor connected, std::string name)
    : socket_{std::move(connected)}, name_{std::move(name)} {
    // Blocking, with a limit: a reader then needs one system call per answer, not two. All else says
    // MSG_DONTWAIT.
    make_blocking(socket_.get());
    const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(longest_read);
    set_option(socket_.get(), SOL_SOCKET, SO_RCVTIMEO,
               ::timeval{.tv_sec = 0, .tv_usec = static_cast<::suseconds_t>(limit.count())});
}

failure stream::shake_hands(clock::time_point deadline, const waiting& wait) {
    for (;;) {
        io_result step = tls_->handshake();
        if (step.what == outcome::done) {
            return {};
        }
        if (step.what == outcome::closed) {
            step.why.detail += " during the TLS handshake; does it speak TLS there?";
        }
        if (step.lost()) {
            return named(std::move(step)).why;
        }
        if (!wait(socket_.get(), step.wants, deadline)) {
            return {
                errc::store_unavailable,
                name_ + ": no answer to the TLS handshake in time; does the server speak TLS there?"};
        }
    }
}

io_result stream::named(io_result result) const {
    if (result.lost()) {
        result.why.detail = name_ + ": " + result.why.detail;
    }
    return result;
}

io_result stream::read_plain(std::span<char> into, int flags) {
    const auto got = ::recv(socket_.get(), into.data(), into.size(), flags);
    if (got > 0) {
        return {.what = outcome::done, .bytes = static_cast<std::size_t>(got), .why = {}};
    }
    if (got == 0) {
        return {.what = outcome::closed,
                .why = {errc::store_unavailable, name_ + ": the server closed the connection"}};
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        return {.what = outcome::again, .wants = POLLIN, .why = {}};
    }
    return named({.what = outcome::failed, .why = broken(errno)});
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
    if (result.what == outcome::again &&
        wait_for(socket_.get(), result.wants, std::min(until, limit))) {
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
        return {.what = outcome::done, .bytes = static_cast<std::size_t>(sent), .why = {}};
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        return {.what = outcome::again, .wants = POLLOUT, .why = {}};
    }
    return named({.what = outcome::failed, .why = broken(errno)});
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
    // Resets the connection now. Some kernels refuse that while another thread waits in a read (EBUSY);
    // then it happens when the descriptor is closed. Not by ::connect, which the thread sanitizer takes
    // for the making of a descriptor that nobody else uses yet.
    const ::sockaddr nowhere{.sa_family = AF_UNSPEC, .sa_data = {}};
    ::syscall(SYS_connect, socket_.get(), &nowhere, sizeof nowhere);
    shut();
}

}  // namespace holdfast::engines::redis
