#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <integration/stage.hpp>
#ifdef HOLDFAST_TEST_REDIS
#include <support/redis_servers.hpp>
#endif

/// The stores that locks on several names are tested with.
namespace holdfast::testing {

[[nodiscard]] inline std::vector<std::string> tested_schemes() {
    return {"memory", "local",
#ifdef HOLDFAST_TEST_REDIS
            "redis"
#endif
    };
}

#ifdef HOLDFAST_TEST_REDIS
/// One server for the whole test program: starting one takes longer than most tests.
[[nodiscard]] inline testing_support::redis_server& shared_redis() {
    static testing_support::redis_server server;
    return server;
}
#endif

/// A store with nothing in it, and two clients of it.
class any_store {
public:
    explicit any_store(const std::string& scheme) {
        if (scheme == "memory") {
            address_ = fresh_store();
        } else if (scheme == "local") {
            auto pattern = (std::filesystem::temp_directory_path() / "holdfast-joint-XXXXXX").string();
            if (::mkdtemp(pattern.data()) == nullptr) {
                throw std::runtime_error{"no temporary directory for the store"};
            }
            directory_ = pattern;
            address_ = "local:" + (directory_ / "store").string();
        } else {
#ifdef HOLDFAST_TEST_REDIS
            shared_redis().cli({"FLUSHALL"});
            address_ = "redis://127.0.0.1:" + std::to_string(shared_redis().port());
#endif
        }
    }
    any_store(const any_store&) = delete;
    any_store& operator=(const any_store&) = delete;
    ~any_store() {
        if (!directory_.empty()) {
            std::error_code ignored;
            std::filesystem::remove_all(directory_, ignored);
        }
    }
    [[nodiscard]] const std::string& address() const noexcept {
        return address_;
    }

private:
    std::string address_;
    std::filesystem::path directory_;
};

class on_any_store : public ::testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] bool is_free(const std::string& name) { return other_.inspect(name).holders.empty(); }
    [[nodiscard]] bool all_free(const std::vector<std::string>& names) {
        return std::all_of(names.begin(), names.end(),
                           [this](const auto& one) { return is_free(one); });
    }
    [[nodiscard]] bool all_become_free(const std::vector<std::string>& names) {
        return eventually([&] { return all_free(names); });
    }

    any_store store_{GetParam()};
    client client_{store_.address()};
    client other_{store_.address()};
};

}  // namespace holdfast::testing
