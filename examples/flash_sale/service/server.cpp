#include "server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <csignal>
#include <set>

namespace flash_sale {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
/// Awaited operations return their error instead of throwing it.
constexpr auto told = asio::as_tuple(asio::use_awaitable);

struct connection;

/// What the connections share. Used on their one thread, except `pool` and `answer`.
struct shared {
    asio::thread_pool& pool;
    const server::handler& answer;
    std::set<connection*> connections{};
    bool closing{};
};

struct connection {
    connection(tcp::socket opened, shared& among) : socket{std::move(opened)}, all{among} {
        all.connections.insert(this);
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() { all.connections.erase(this); }

    tcp::socket socket;
    shared& all;
    /// Between two requests.
    bool idle{};
};

using request = http::request<http::empty_body>;
using response = http::response<http::string_body>;

asio::awaitable<reply> answer_to(const request& asked, const server::handler& answer) {
    if (asked.method() != http::verb::get) {
        co_return reply{405, "text/plain", "only GET\n"};
    }
    const auto target = asked.target();
    co_return answer(std::string(target.data(), target.size()));
}

/// Reads a request, has it answered by a thread of the pool, writes the answer, and so on.
asio::awaitable<void> serve(tcp::socket socket, shared& all) {
    connection here{std::move(socket), all};
    boost::beast::flat_buffer buffer;
    for (bool more = true; more && !all.closing;) {
        request asked;
        here.idle = true;
        const auto [unread, read] = co_await http::async_read(here.socket, buffer, asked, told);
        here.idle = false;
        if (unread) {
            co_return;
        }
        auto said =
            co_await asio::co_spawn(all.pool, answer_to(asked, all.answer), asio::use_awaitable);
        response answer{static_cast<http::status>(said.status), asked.version()};
        answer.set(http::field::content_type, said.type);
        answer.keep_alive(asked.keep_alive() && !all.closing);
        answer.body() = std::move(said.body);
        answer.prepare_payload();
        const auto [unwritten, wrote] = co_await http::async_write(here.socket, answer, told);
        more = !unwritten && answer.keep_alive();
    }
}

}  // namespace

class server::state {
public:
    state(const server_options& options, handler answer)
        : answer_{std::move(answer)},
          pool_{options.threads},
          shared_{pool_, answer_},
          acceptor_{context_, tcp::endpoint{asio::ip::address_v4::loopback(), options.port}},
          signals_{context_, SIGTERM, SIGINT} {}
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
        pool_.stop();
        pool_.join();
    }

    void run() {
        asio::co_spawn(context_, accept(), asio::detached);
        signals_.async_wait([this](error_code error, int) {
            if (!error) {
                close();
            }
        });
        context_.run();
        pool_.join();
    }

private:
    asio::awaitable<void> accept() {
        while (!shared_.closing) {
            auto [error, socket] = co_await acceptor_.async_accept(told);
            if (!error) {
                socket.set_option(tcp::no_delay{true}, error);
                asio::co_spawn(context_, serve(std::move(socket), shared_), asio::detached);
            }
        }
    }

    void close() {
        shared_.closing = true;
        error_code ignored;
        acceptor_.close(ignored);
        for (auto* const one : shared_.connections) {
            if (one->idle) {
                one->socket.close(ignored);
            }
        }
    }

    handler answer_;
    // Before the context, whose destructor drops connections that refer to them.
    asio::thread_pool pool_;
    shared shared_;
    asio::io_context context_{1};
    tcp::acceptor acceptor_;
    asio::signal_set signals_;
};

server::server(const server_options& options, handler answer)
    : state_{std::make_unique<state>(options, std::move(answer))} {}

server::~server() = default;

void server::run() {
    state_->run();
}

}  // namespace flash_sale
