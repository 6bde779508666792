#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <vector>

#include "process.hpp"

namespace holdfast::cli::testing {

/// The holdfast program on a local store of the test's own.
class cli_test : public ::testing::Test {
protected:
    using words = std::vector<std::string>;

    [[nodiscard]] std::filesystem::path file(const std::string& name) const {
        return directory_.path() / name;
    }
    [[nodiscard]] std::string store() const { return "local:" + file("store").string(); }
    [[nodiscard]] std::map<std::string, std::string> environment() const {
        return {{"HOLDFAST_STORE", store()}};
    }

    /// `holdfast` with these arguments, on the test's store.
    [[nodiscard]] std::unique_ptr<program> start(const words& arguments,
                                                 program_options options = {}) const;
    /// The same, waited for.
    [[nodiscard]] std::unique_ptr<program> finish(const words& arguments,
                                                  program_options options = {}) const;
    /// `holdfast run NAME OPTIONS -- sh -c SCRIPT`
    [[nodiscard]] words run_script(const std::string& name, const words& options,
                                   const std::string& script) const;

    /// A program that holds `name` until `close_input`; it has the lock when this returns.
    [[nodiscard]] std::unique_ptr<program> hold(const std::string& name,
                                                const words& options = {}) const;

    [[nodiscard]] boost::json::object inspect(const std::string& name) const;
    /// The first holder of a lock that is held.
    [[nodiscard]] boost::json::object holder_of(const std::string& name) const;
    void wait_for_waiters(const std::string& name, std::int64_t count) const;

    static boost::json::object parse(const std::string& text);

private:
    temporary_directory directory_;
};

[[nodiscard]] const std::string& program_path();

}  // namespace holdfast::cli::testing
