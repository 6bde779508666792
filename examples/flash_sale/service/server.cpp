#include "server.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
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

/// What the sessions share. Used on the one thread of the connections, except `pool` and `answer`.
struct shared {
    asio::thread_pool& pool;
    const server::handler& answer;
    std::set<class session*> sessions{};
    bool closing{};
};

/// One connection: reads a request, has it answered, writes the answer, and so on.
class session final : public std::enable_shared_from_this<session> {
public:
    session(tcp::socket socket, shared& all) : socket_{std::move(socket)}, all_{all} {
        all_.sessions.insert(this);
    }
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session() { all_.sessions.erase(this); }

    void read() {
        if (all_.closing) {
            return;
        }
        idle_ = true;
        request_ = {};
        http::async_read(socket_, buffer_, request_,
                         [self = shared_from_this()](error_code error, std::size_t) {
                             self->idle_ = false;
                             if (!error) {
                                 self->work();
                             }
                         });
    }

    void close_if_idle() {
        if (idle_) {
            error_code ignored;
            socket_.close(ignored);
        }
    }

private:
    void work() {
        // The connections' thread must not end while a request is with the pool, and a session must not
        // end on a thread of the pool: so it goes back as a whole.
        asio::post(all_.pool, [self = shared_from_this(),
                               back = asio::make_work_guard(socket_.get_executor())]() mutable {
            const auto target = self->request_.target();
            auto said = self->request_.method() == http::verb::get
                            ? self->all_.answer(std::string(target.data(), target.size()))
                            : reply{405, "text/plain", "only GET\n"};
            asio::post(back.get_executor(), [self = std::move(self), said = std::move(said)]() mutable {
                self->write(std::move(said));
            });
        });
    }

    void write(reply said) {
        response_ = {static_cast<http::status>(said.status), request_.version()};
        response_.set(http::field::content_type, said.type);
        response_.keep_alive(request_.keep_alive() && !all_.closing);
        response_.body() = std::move(said.body);
        response_.prepare_payload();
        http::async_write(socket_, response_,
                          [self = shared_from_this()](error_code error, std::size_t) {
                              if (!error && self->response_.keep_alive()) {
                                  self->read();
                              }
                          });
    }

    tcp::socket socket_;
    shared& all_;
    boost::beast::flat_buffer buffer_;
    http::request<http::empty_body> request_;
    http::response<http::string_body> response_;
    bool idle_{};
};

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
        accept();
        signals_.async_wait([this](error_code error, int) {
            if (!error) {
                close();
            }
        });
        context_.run();
        pool_.join();
    }

private:
    void accept() {
        acceptor_.async_accept([this](error_code error, tcp::socket socket) {
            if (shared_.closing || error == asio::error::operation_aborted) {
                return;
            }
            if (!error) {
                socket.set_option(tcp::no_delay{true}, error);
                std::make_shared<session>(std::move(socket), shared_)->read();
            }
            accept();
        });
    }

    void close() {
        shared_.closing = true;
        error_code ignored;
        acceptor_.close(ignored);
        for (auto* const one : shared_.sessions) {
            one->close_if_idle();
        }
    }

    handler answer_;
    // Before the context, whose destructor drops sessions that refer to them.
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
