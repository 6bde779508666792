#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <holdfast/token.hpp>

namespace demo {

/// A resource that checks tokens, as every resource should that a lock protects: it remembers the
/// largest token it has seen and refuses writes with a smaller one. Check and write are one step here
/// (a file lock); in a database they are one statement.
class fenced_register {
public:
    explicit fenced_register(std::filesystem::path file) : file_{std::move(file)} {}

    /// False when a holder with a larger token has been here.
    [[nodiscard]] bool write(holdfast::fencing_token token, const std::string& value) const;
    [[nodiscard]] std::string read() const;

private:
    std::filesystem::path file_;
};

}  // namespace demo
