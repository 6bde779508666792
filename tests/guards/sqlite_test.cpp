#include <filesystem>
#include <stdexcept>
#include <support/server_process.hpp>

#include <holdfast/guard/sqlite.hpp>
#include "sql_session.hpp"

#include <sqlite3.h>

namespace holdfast::guard::testing {

namespace {

class sqlite_session final : public sql_session {
public:
    explicit sqlite_session(const std::filesystem::path& file) {
        if (::sqlite3_open(file.c_str(), &handle_) != SQLITE_OK) {
            throw std::runtime_error{::sqlite3_errmsg(handle_)};
        }
    }
    sqlite_session(const sqlite_session&) = delete;
    sqlite_session& operator=(const sqlite_session&) = delete;
    ~sqlite_session() override {
        guarded_.reset();
        ::sqlite3_close(handle_);
    }

    void execute(const std::string& sql) override { static_cast<void>(value(sql)); }
    std::string value(const std::string& sql) override {
        std::string found;
        const auto keep = [](void* into, int, char** columns, char**) {
            *static_cast<std::string*>(into) = columns[0] != nullptr ? columns[0] : "";
            return 0;
        };
        if (::sqlite3_exec(handle_, sql.c_str(), keep, &found, nullptr) != SQLITE_OK) {
            throw std::runtime_error{::sqlite3_errmsg(handle_)};
        }
        return found;
    }
    database& guarded() override {
        if (!guarded_) {
            guarded_ = std::make_unique<sqlite_database>(handle_);
        }
        return *guarded_;
    }

private:
    sqlite3* handle_{};
    std::unique_ptr<sqlite_database> guarded_;
};

const std::filesystem::path& directory() {
    static const testing_support::temporary_directory files;
    return files.path();
}

}  // namespace

std::unique_ptr<sql_session> open_session() {
    auto made = std::make_unique<sqlite_session>(directory() / "database");
    made->execute("PRAGMA journal_mode = WAL");
    made->execute("PRAGMA synchronous = OFF");
    return made;
}

namespace {

using sqlite_guards = sql_guards;

/// SQLite's users do not wait: the second one is told, and nothing of it remains.
TEST_F(sqlite_guards, a_holder_that_is_admitted_keeps_others_out_until_it_commits) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fence{fresh_db()}.admit("stock", {34}), admission::admitted);
    old_->execute("BEGIN");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.admit("stock", {33}); }), errc::busy);
    old_->execute("ROLLBACK");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {35}); }), errc::busy);
    fresh_->execute("COMMIT");
    EXPECT_EQ(write_stock(*old_, {33}, 10), admission::stale);
}

/// What it read may be old, so it must not write.
TEST_F(sqlite_guards, a_deferred_transaction_that_read_before_somebody_wrote_is_busy) {
    fresh_->execute("BEGIN");
    EXPECT_EQ(fresh_->value("SELECT stock FROM product_stock"), "100");
    EXPECT_EQ(write_stock(*old_, {33}, 99), admission::admitted);
    EXPECT_EQ(error_of([&] { return fence{fresh_db()}.admit("stock", {34}); }), errc::busy);
    fresh_->execute("ROLLBACK");
    EXPECT_EQ(write_stock(*fresh_, {34}, 98), admission::admitted);
}

TEST_F(sqlite_guards, a_database_that_may_only_be_read_says_so) {
    old_->execute("PRAGMA query_only = ON");
    EXPECT_EQ(error_of([&] { return fence{old_db()}.announce("stock", {33}); }), errc::unauthorised);
    old_->execute("PRAGMA query_only = OFF");
}

}  // namespace

}  // namespace holdfast::guard::testing
