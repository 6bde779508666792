#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <holdfast/guard/database.hpp>

#include "stock.hpp"

namespace flash_sale {

/// An open connection to a database that speaks SQL. Thread safety: none.
class sql_session {
public:
    sql_session() = default;
    sql_session(const sql_session&) = delete;
    sql_session& operator=(const sql_session&) = delete;
    virtual ~sql_session() = default;

    [[nodiscard]] virtual holdfast::guard::database& database() = 0;
    /// Of no use any more: another one is opened in its place.
    [[nodiscard]] virtual bool is_broken() const = 0;
};

/// Throws `std::system_error` with what the database says.
using sql_opener = std::function<std::unique_ptr<sql_session>()>;

/// The stock in the tables `stock` and `orders`, which it makes unless they are there. The statements
/// are the same for every database, as far as databases allow.
[[nodiscard]] std::unique_ptr<stock> make_sql_stock(sql_opener open, std::size_t connections);

}  // namespace flash_sale
