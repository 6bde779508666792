#include <filesystem>
#include <holdfast/testing/engine_contract.hpp>
#include <string>

#include "sqlite_records.hpp"

namespace {

/// A database of its own for every test.
class database_for_a_test {
public:
    database_for_a_test() {
        holdfast::engines::register_engine("sqlite-records", open_sqlite_records);
        std::filesystem::create_directory(directory_);
    }
    database_for_a_test(const database_for_a_test&) = delete;
    database_for_a_test& operator=(const database_for_a_test&) = delete;
    ~database_for_a_test() { std::filesystem::remove_all(directory_); }

    [[nodiscard]] std::string address() const {
        return "sqlite-records:" + (directory_ / "locks.db").string();
    }
    static constexpr std::chrono::milliseconds short_ttl{250};
    static constexpr std::chrono::milliseconds wake_bound{3000};

private:
    const std::filesystem::path directory_{
        std::filesystem::temp_directory_path() /
        ("holdfast-example-" + holdfast::owner_id::random_client().client_text())};
};

}  // namespace

HOLDFAST_INSTANTIATE_ENGINE_CONTRACT(sqlite_records, ::database_for_a_test);
