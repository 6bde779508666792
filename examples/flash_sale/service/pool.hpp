#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace flash_sale {

/// Connections that are lent to one thread at a time. A thread that finds no free connection waits.
template <class Connection>
class pool {
public:
    class loan {
    public:
        loan(pool& from, std::unique_ptr<Connection> connection)
            : from_{from}, connection_{std::move(connection)} {}
        loan(const loan&) = delete;
        loan& operator=(const loan&) = delete;
        ~loan() { from_.take_back(std::move(connection_)); }

        Connection* operator->() const noexcept { return connection_.get(); }
        Connection& operator*() const noexcept { return *connection_; }

    private:
        pool& from_;
        std::unique_ptr<Connection> connection_;
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
        auto connection = std::move(free_.back());
        free_.pop_back();
        return loan{*this, std::move(connection)};
    }

private:
    void take_back(std::unique_ptr<Connection> connection) {
        const std::scoped_lock hold{guard_};
        free_.push_back(std::move(connection));
        returned_.notify_one();
    }

    std::mutex guard_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<Connection>> free_;
};

}  // namespace flash_sale
