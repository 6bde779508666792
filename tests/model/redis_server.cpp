#include "redis_server.hpp"

#include <common/net/stream.hpp>
#include <redis/net/handshake.hpp>
#include <threading/primitives.hpp>

#include <algorithm>
#include <map>
#include <string>

/// In place of sockets, TLS and the handshake: the connection above them is the shipped one.
namespace holdfast {

namespace {

struct conversation {
    std::size_t asked{};
    bool subscribes{};
    std::string unread;
    bool over{};
};

std::map<int, conversation> conversations;
bool ended = false;
std::size_t answers_left = SIZE_MAX;
constexpr char all_conversations{};
threading::thread server_thread;

[[nodiscard]] bool is_asked(const std::pair<const int, conversation>& each) {
    return each.second.asked > 0 && !each.second.over;
}

/// Answers one line. Says on which socket there is something to read now; negative: it has ended.
[[nodiscard]] int answer_one() {
    int where = -1;
    model::block(
        &all_conversations, model::patience::endless,
        [] { return ended || std::any_of(conversations.begin(), conversations.end(), is_asked); },
        [&] {
            const auto asked = std::find_if(conversations.begin(), conversations.end(), is_asked);
            if (ended || asked == conversations.end()) {
                return;
            }
            where = asked->first;
            if (answers_left == 0) {
                asked->second.over = true;
                return;
            }
            --answers_left;
            --asked->second.asked;
            asked->second.unread +=
                asked->second.subscribes ? "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n" : "+PONG\r\n";
        });
    return where;
}

}  // namespace

namespace model {

redis_server::redis_server() {
    conversations.clear();
    ended = false;
    answers_left = SIZE_MAX;
    server_thread = threading::thread{[] {
        for (int where = answer_one(); where >= 0; where = answer_one()) {
            threading::eventfd_write(where, 1);
        }
    }};
}

redis_server::~redis_server() {
    act(&all_conversations, [] { ended = true; });
    server_thread.join();
}

void redis_server::publish() {
    int where = -1;
    act(&all_conversations, [&] {
        for (auto& [socket, with] : conversations) {
            if (with.subscribes && !with.over) {
                with.unread += "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$4\r\nnews\r\n";
                where = socket;
            }
        }
    });
    if (where >= 0) {
        threading::eventfd_write(where, 1);
    }
}

void redis_server::hang_up_after(std::size_t answers) {
    answers_left = answers;
}

}  // namespace model

namespace engines::net {

tls_session::~tls_session() = default;
void tls_session::context_deleter::operator()(ssl_ctx_st*) const noexcept {}
void tls_session::session_deleter::operator()(ssl_st*) const noexcept {}

stream::opened stream::open(const node_address&, const std::optional<tls_settings>&,
                            const plain_protocol&, clock::time_point, const waiting&) {
    descriptor made{threading::eventfd(0, 0)};
    conversations[made.get()] = {};
    return {std::make_unique<stream>(std::move(made), "server"), {}};
}

stream::stream(descriptor connected, std::string name)
    : socket_{std::move(connected)}, name_{std::move(name)} {}

io_result stream::read_now(std::span<char> into) {
    ::eventfd_t rung{};
    threading::eventfd_read(socket_.get(), &rung);
    io_result result;
    bool over = false;
    model::act(&all_conversations, [&] {
        auto& with = conversations.at(socket_.get());
        over = with.over;
        result.bytes = std::min(into.size(), with.unread.size());
        std::copy_n(with.unread.begin(), result.bytes, into.begin());
        with.unread.erase(0, result.bytes);
        if (result.bytes == 0) {
            result.outcome = with.over ? io_result::status::closed : io_result::status::again;
            result.events = POLLIN;
        }
    });
    if (over) {
        threading::eventfd_write(socket_.get(), 1);  // the end of a stream can be read for ever
    }
    if (result.lost()) {
        result.error = {errc::store_unavailable, "the server hung up"};
    }
    return result;
}

/// Without an end: whoever must be called away from here is called by `shut`.
io_result stream::read_some(std::span<char> into, clock::time_point, clock::time_point) {
    ::pollfd watched{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    threading::poll(&watched, 1, -1);
    return read_now(into);
}

io_result stream::write_now(std::span<const char> from) {
    io_result result;
    model::act(&all_conversations, [&] {
        auto& with = conversations.at(socket_.get());
        with.subscribes = from.front() == '*';  // everything else is plain lines
        with.asked +=
            with.subscribes ? 1 : static_cast<std::size_t>(std::count(from.begin(), from.end(), '\n'));
        result.bytes = from.size();
    });
    return result;
}

bool stream::stale() {
    return false;
}

void stream::shut() noexcept {
    model::act(&all_conversations, [&] { conversations.at(socket_.get()).over = true; });
    threading::eventfd_write(socket_.get(), 1);
}

void stream::discard() noexcept {
    shut();
}

}  // namespace engines::net

namespace engines::redis {

introduction introduce(net::stream&, reply_reader&, const node_address&, const connection_settings&,
                       const peer_name&, const commands&, clock::time_point, const net::waiting&) {
    return {};
}

}  // namespace engines::redis

}  // namespace holdfast
