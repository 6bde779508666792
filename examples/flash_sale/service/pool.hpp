#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace flash_sale {

/// Connections that are lent to one thread at a time. Whoever finds none waits.
template <class Connection>
class pool {
public:
    class loan {
    public:
        loan(pool& from, std::unique_ptr<Connection> what) : from_{from}, what_{std::move(what)} {}
        loan(const loan&) = delete;
        loan& operator=(const loan&) = delete;
        ~loan() { from_.take_back(std::move(what_)); }

        Connection* operator->() const noexcept { return what_.get(); }
        Connection& operator*() const noexcept { return *what_; }

    private:
        pool& from_;
        std::unique_ptr<Connection> what_;
    };

    template <class Open>
    pool(std::size_t count, const Open& open) {
        for (std::size_t index = 0; index < count; ++index) {
            free_.push_back(open());
        }
    }

    [[nodiscard]] loan borrow() {
        std::unique_lock hold{guard_};
        returned_.wait(hold, [this] { return !free_.empty(); });
        auto what = std::move(free_.back());
        free_.pop_back();
        return loan{*this, std::move(what)};
    }

private:
    void take_back(std::unique_ptr<Connection> what) {
        const std::scoped_lock hold{guard_};
        free_.push_back(std::move(what));
        returned_.notify_one();
    }

    std::mutex guard_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<Connection>> free_;
};

}  // namespace flash_sale
