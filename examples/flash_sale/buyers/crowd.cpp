#include "crowd.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <memory>

namespace flash_sale {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using clock = std::chrono::steady_clock;

/// What all buyers share.
struct market {
    const crowd_options& options;
    asio::io_context& context;
    std::vector<purchase> purchases{};
    std::size_t connected{};
    clock::time_point opened{};
    std::function<void()> let_in{};

    [[nodiscard]] bool is_over() const { return clock::now() > opened + options.deadline; }
};

class buyer {
public:
    buyer(market& at, std::size_t number)
        : market_{at}, number_{number}, socket_{at.context}, pause_{at.context} {}

    void arrive() {
        connect([this] {
            if (++market_.connected == market_.options.buyers) {
                market_.let_in();
            }
        });
    }

    void buy() {
        if (bought_ == market_.options.tries) {
            return;
        }
        now_ = {};
        began_ = clock::now();
        ask();
    }

private:
    static constexpr std::chrono::milliseconds breath{50};

    template <class Then>
    void connect(Then then) {
        error_code ignored;
        socket_.close(ignored);
        buffer_.clear();
        const tcp::endpoint shop{asio::ip::address_v4::loopback(), market_.options.port};
        socket_.async_connect(shop, [this, then = std::move(then)](error_code error) mutable {
            if (!error) {
                socket_.set_option(tcp::no_delay{true}, error);
                then();
            } else {
                after_a_breath([this, then = std::move(then)]() mutable { connect(std::move(then)); });
            }
        });
    }

    template <class Then>
    void after_a_breath(Then then) {
        pause_.expires_after(breath);
        pause_.async_wait([this, then = std::move(then)](error_code) mutable {
            if (market_.opened != clock::time_point{} && market_.is_over()) {
                finish(purchase::ending::failed);
            } else {
                then();
            }
        });
    }

    void ask() {
        const auto id =
            market_.options.tag + "-" + std::to_string(number_) + "-" + std::to_string(bought_);
        request_ = {http::verb::get, market_.options.path + "?request=" + id, 11};
        request_.set(http::field::host, "127.0.0.1");
        http::async_write(socket_, request_, [this](error_code error, std::size_t) {
            if (error) {
                fail();
            } else {
                listen();
            }
        });
    }

    void listen() {
        response_ = {};
        http::async_read(socket_, buffer_, response_, [this](error_code error, std::size_t) {
            if (error || response_.result() != http::status::ok) {
                fail();
                return;
            }
            finish(response_.body().find(R"("outcome":"sold")") != std::string::npos
                       ? purchase::ending::sold
                       : purchase::ending::sold_out);
        });
    }

    void fail() {
        ++now_.failures;
        after_a_breath([this] { connect([this] { ask(); }); });
    }

    void finish(purchase::ending end) {
        const auto since = [](auto from, auto to) {
            return std::chrono::duration_cast<std::chrono::microseconds>(to - from);
        };
        now_.end = end;
        now_.begin = since(market_.opened, began_);
        now_.took = since(began_, clock::now());
        market_.purchases.push_back(now_);
        ++bought_;
        if (end == purchase::ending::failed) {
            return;
        }
        if (response_.keep_alive()) {
            buy();
        } else {
            connect([this] { buy(); });
        }
    }

    market& market_;
    std::size_t number_;
    std::size_t bought_{};
    tcp::socket socket_;
    asio::steady_timer pause_;
    boost::beast::flat_buffer buffer_;
    http::request<http::empty_body> request_;
    http::response<http::string_body> response_;
    purchase now_;
    clock::time_point began_;
};

}  // namespace

std::string_view to_string(purchase::ending end) noexcept {
    switch (end) {
        case purchase::ending::sold:
            return "sold";
        case purchase::ending::sold_out:
            return "sold_out";
        case purchase::ending::failed:
            break;
    }
    return "failed";
}

std::vector<purchase> buy(const crowd_options& options, const std::function<void()>& go) {
    asio::io_context context{1};
    market place{options, context};
    std::vector<std::unique_ptr<buyer>> crowd;
    for (std::size_t number = 0; number < options.buyers; ++number) {
        crowd.push_back(std::make_unique<buyer>(place, number));
    }
    place.let_in = [&] {
        place.opened = clock::now();
        go();
        for (const auto& one : crowd) {
            one->buy();
        }
    };
    for (const auto& one : crowd) {
        one->arrive();
    }
    // A server that stays silent must not keep the crowd forever.
    context.run_for(options.deadline + std::chrono::seconds{30});
    return place.purchases;
}

}  // namespace flash_sale
