#pragma once

#include <holdfast/export.hpp>
#include <holdfast/guard/database.hpp>

struct st_mysql;

namespace holdfast::guard {
inline namespace v0 {

/// A connection to MariaDB, 10.2 or newer, or MySQL, 8.0 or newer (`MYSQL*`), with InnoDB tables.
///
/// Works in every isolation level: guards look at what is committed, not at the transaction's snapshot.
/// The user's own reads do not. In REPEATABLE READ, the default, the snapshot is taken by the first
/// plain SELECT: call the guard before it, and do not begin WITH CONSISTENT SNAPSHOT.
///
/// With MYSQL_OPT_RECONNECT, a statement during which the client library connected again is
/// `outcome_unknown` if there was a transaction: that is gone.
///
/// Parameters are put into the statement's text, so every `$` in it is one, also in quotes.
///
/// A deadlock (`busy`) has rolled the whole transaction back, a lock timeout or KILL QUERY (`busy`
/// too) only the statement: roll back in both cases.
///
/// After an error of any statement on the connection, `in_transaction` asks the server (`DO 0`):
/// the client library does not know whether the error ended the transaction.
class HOLDFAST_EXPORT mysql_database final : public database {
public:
    /// Throws `invalid_argument` for a null connection.
    explicit mysql_database(st_mysql* connection);

    [[nodiscard]] dialect speaks() const noexcept override { return dialect::mysql; }
    [[nodiscard]] bool in_transaction() const override;
    answer run(std::string_view statement, std::span<const parameter> parameters) override;

private:
    [[nodiscard]] std::string filled_in(std::string_view statement,
                                        std::span<const parameter> parameters) const;
    [[nodiscard]] std::string literal(const parameter& value) const;
    void refuse_too_long(const std::string& text) const;
    void refuse_several(const std::string& text) const;
    [[nodiscard]] answer execute(const std::string& text) const;
    void skip_further_results() const;
    void ask_for_status() const;
    [[noreturn]] void fail() const;

    st_mysql* connection_;
    /// Whether the last statement that was sent through `run` ended well.
    bool status_is_current_{true};
};

}  // namespace v0
}  // namespace holdfast::guard
