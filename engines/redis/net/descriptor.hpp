#pragma once

#include <utility>

#include <threading/primitives.hpp>

namespace holdfast::engines::redis {

/// Owns a file descriptor.
class descriptor {
public:
    descriptor() = default;
    explicit descriptor(int number) noexcept : number_{number} {}
    descriptor(descriptor&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~descriptor() {
        if (number_ >= 0) {
            threading::close(number_);
        }
    }

    [[nodiscard]] int get() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }

private:
    int number_{-1};
};

/// Lets one thread wake another from poll().
class bell {
public:
    bell() : descriptor_{threading::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {}

    [[nodiscard]] int get() const noexcept { return descriptor_.get(); }
    void ring() const noexcept { threading::eventfd_write(descriptor_.get(), 1); }
    void silence() const noexcept {
        ::eventfd_t rung{};
        threading::eventfd_read(descriptor_.get(), &rung);
    }

private:
    descriptor descriptor_;
};

}  // namespace holdfast::engines::redis
