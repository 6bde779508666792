#pragma once

#include <cstdint>
#include <filesystem>

namespace demo {

/// A number in a file, read and written back without any protection: it needs a lock.
class counter {
public:
    explicit counter(const std::filesystem::path& file);
    counter(const counter&) = delete;
    counter& operator=(const counter&) = delete;
    ~counter();

    [[nodiscard]] std::int64_t read() const;
    void write(std::int64_t value) const;
    void increment() const { write(read() + 1); }

private:
    int file_;
};

}  // namespace demo
