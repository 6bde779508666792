#include <libpq-fe.h>

#include <system_error>

#include <holdfast/error.hpp>
#include <holdfast/guard/postgres.hpp>

#include "sql_stock.hpp"

namespace flash_sale {

namespace {

struct close {
    void operator()(PGconn* handle) const noexcept { ::PQfinish(handle); }
};
using handle = std::unique_ptr<PGconn, close>;

handle open(const std::string& address) {
    handle opened{::PQconnectdb(address.c_str())};
    if (!opened || ::PQstatus(opened.get()) != CONNECTION_OK) {
        const std::string reason{opened ? ::PQerrorMessage(opened.get()) : "out of memory"};
        throw std::system_error{make_error_code(holdfast::errc::store_unavailable),
                                "postgresql: " + reason.substr(0, reason.find('\n'))};
    }
    // No notices such as "the table exists already".
    ::PQsetNoticeProcessor(
        opened.get(), [](void*, const char*) {}, nullptr);
    return opened;
}

class postgresql_session final : public sql_session {
public:
    explicit postgresql_session(const std::string& address) : opened_{open(address)} {}

    holdfast::guard::database& database() override { return database_; }
    [[nodiscard]] bool is_broken() const override { return ::PQstatus(opened_.get()) != CONNECTION_OK; }

private:
    handle opened_;
    holdfast::guard::postgres_database database_{opened_.get()};
};

}  // namespace

std::unique_ptr<stock> open_postgresql_stock(const std::string& address, std::size_t connections) {
    return make_sql_stock([address] { return std::make_unique<postgresql_session>(address); },
                          connections);
}

}  // namespace flash_sale
