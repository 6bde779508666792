#include <mysql.h>

#include <regex>
#include <stdexcept>
#include <system_error>

#include <holdfast/error.hpp>
#include <holdfast/guard/mysql.hpp>

#include "sql_stock.hpp"

namespace flash_sale {

namespace {

struct place {
    std::string user;
    std::string password;
    std::string host;
    unsigned port{};
    std::string database;
};

place parsed(const std::string& address) {
    static const std::regex form{R"(mariadb://([^:@/]+)(?::([^@/]*))?@([^:@/]+):(\d{1,5})/(\w+))"};
    std::smatch part;
    if (!std::regex_match(address, part, form)) {
        // Without the address: there may be a password in it.
        throw std::runtime_error{
            "the stock's address is not mariadb://user[:password]@host:port/database"};
    }
    return {part[1], part[2], part[3], static_cast<unsigned>(std::stoul(part[4])), part[5]};
}

struct close {
    void operator()(MYSQL* handle) const noexcept { ::mysql_close(handle); }
};
using handle = std::unique_ptr<MYSQL, close>;

handle open(const place& server) {
    handle opened{::mysql_init(nullptr)};
    if (!opened) {
        throw std::bad_alloc{};
    }
    constexpr unsigned seconds = 5;
    ::mysql_options(opened.get(), MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    if (::mysql_real_connect(opened.get(), server.host.c_str(), server.user.c_str(),
                             server.password.c_str(), server.database.c_str(), server.port, nullptr,
                             0) == nullptr) {
        throw std::system_error{make_error_code(holdfast::errc::store_unavailable),
                                std::string{"mariadb: "} + ::mysql_error(opened.get())};
    }
    return opened;
}

class mariadb_session final : public sql_session {
public:
    explicit mariadb_session(const place& server) : opened_{open(server)} {}

    holdfast::guard::database& database() override { return database_; }
    [[nodiscard]] bool is_broken() const override {
        // The library closes the socket of a connection that it has lost.
        return ::mysql_get_socket(opened_.get()) == MARIADB_INVALID_SOCKET;
    }

private:
    handle opened_;
    holdfast::guard::mysql_database database_{opened_.get()};
};

}  // namespace

std::unique_ptr<stock> open_mariadb_stock(const std::string& address, std::size_t connections) {
    return make_sql_stock(
        [server = parsed(address)] { return std::make_unique<mariadb_session>(server); }, connections);
}

}  // namespace flash_sale
