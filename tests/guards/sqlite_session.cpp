#include <filesystem>
#include <stdexcept>
#include <support/server_process.hpp>

#include <holdfast/guard/sqlite.hpp>
#include "isolation.hpp"

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

std::vector<isolation_level> isolation_levels() {
    return {{.name = "deferred", .setup = {}},
            {.name = "immediate", .setup = {}, .begin = "BEGIN IMMEDIATE"}};
}

bool somebody_waits(sql_session&) {
    return false;
}

}  // namespace holdfast::guard::testing
