#include <sqlite3.h>
#include <unistd.h>

#include <system_error>

#include <holdfast/error.hpp>
#include <holdfast/guard/sqlite.hpp>

#include "sql_stock.hpp"

namespace flash_sale {

namespace {

struct close {
    void operator()(sqlite3* handle) const noexcept { ::sqlite3_close(handle); }
};
using handle = std::unique_ptr<sqlite3, close>;

/// A writer keeps others out for some ten microseconds: SQLite's own pauses, which soon reach 100 ms,
/// would measure themselves.
int wait_for_the_writer(void* /*unused*/, int attempts) {
    constexpr int most_attempts = 50'000;
    constexpr useconds_t longest = 1000;
    if (attempts > most_attempts) {
        return 0;
    }
    ::usleep(attempts < 10 ? 50 : longest / 2);  // not a guess: asked again, not relied upon
    return 1;
}

[[noreturn]] void fail(const std::string& file, const char* reason) {
    throw std::system_error{make_error_code(holdfast::errc::store_unavailable),
                            "cannot use " + file + ": " + reason};
}

handle open(const std::string& file) {
    sqlite3* raw = nullptr;
    const int result = ::sqlite3_open_v2(
        file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    handle opened{raw};
    if (result != SQLITE_OK) {
        fail(file, ::sqlite3_errstr(result));
    }
    ::sqlite3_busy_handler(raw, wait_for_the_writer, nullptr);
    // In a WAL `NORMAL` survives every crash but the machine's.
    constexpr auto settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
    if (::sqlite3_exec(raw, settings, nullptr, nullptr, nullptr) != SQLITE_OK) {
        fail(file, ::sqlite3_errmsg(raw));
    }
    return opened;
}

class sqlite_session final : public sql_session {
public:
    explicit sqlite_session(const std::string& file) : opened_{open(file)} {}

    holdfast::guard::database& database() override { return database_; }
    [[nodiscard]] bool is_broken() const override { return false; }

private:
    handle opened_;
    holdfast::guard::sqlite_database database_{opened_.get()};
};

}  // namespace

std::unique_ptr<stock> open_sqlite_stock(const std::string& file, std::size_t connections) {
    return make_sql_stock([file] { return std::make_unique<sqlite_session>(file); }, connections);
}

}  // namespace flash_sale
