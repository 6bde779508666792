// Strategies that need no lock, or believe so, and the tutorial's own lock.

#include <array>
#include <mutex>
#include <thread>

#include "pool.hpp"
#include "redis_link.hpp"
#include "strategy.hpp"

namespace flash_sale {

namespace {

class unprotected final : public strategy {
public:
    explicit unprotected(const shop& in) : shop_{in} {}
    sale sell(const std::string& request) override { return look_then_write(shop_, request); }

private:
    shop shop_;
};

/// Right for one process. There are two.
class process_local final : public strategy {
public:
    explicit process_local(const shop& in) : shop_{in} {}
    sale sell(const std::string& request) override {
        const std::scoped_lock hold{mutex_};
        return look_then_write(shop_, request);
    }

private:
    shop shop_;
    std::mutex mutex_;
};

/// The tutorial's second version: SETNX, and 20 ms of sleep after each time it did not work. A holder
/// that dies leaves it taken for good.
class tutorial_spin final : public strategy {
public:
    explicit tutorial_spin(const shop& in)
        : shop_{in}, connections_{in.spin_connections, [&] {
                                      return std::make_unique<redis_link>(shop_.spin_address);
                                  }} {}

    sale sell(const std::string& request) override {
        const auto give_up = std::chrono::steady_clock::now() + shop_.patience;
        while (!taken()) {
            if (std::chrono::steady_clock::now() > give_up) {
                return {};
            }
            std::this_thread::sleep_for(pause);  // not a guess: this is how the tutorial waits
        }
        const give_back after{*this};
        return look_then_write(shop_, request);
    }

private:
    static constexpr std::chrono::milliseconds pause{20};
    static constexpr std::string_view key{"RedisDistributedLock"};

    struct give_back {
        tutorial_spin& lock;
        explicit give_back(tutorial_spin& of) : lock{of} {}
        give_back(const give_back&) = delete;
        give_back& operator=(const give_back&) = delete;
        ~give_back() { lock.remove(); }
    };

    [[nodiscard]] bool taken() {
        const std::array<std::string_view, 3> words{"SETNX", key, "taken"};
        return connections_.borrow()->command(words)->integer == 1;
    }
    void remove() noexcept {
        try {
            const std::array<std::string_view, 2> words{"DEL", key};
            connections_.borrow()->command(words);
        } catch (const std::exception&) {
            // The tutorial has no answer to this either.
        }
    }

    shop shop_;
    pool<redis_link> connections_;
};

/// The whole decision is one step in one store, so the store can take it: `UPDATE … WHERE units > 0`,
/// or a script. Nobody waits for anybody's work.
class store_decides final : public strategy {
public:
    store_decides(const shop& in, stock& goods) : shop_{in}, goods_{goods} {}
    sale sell(const std::string& request) override {
        // Spares the work when there is nothing left; the answer that counts comes afterwards.
        if (goods_.units(0) <= 0) {
            return {sale::outcome::sold_out, {}, 0};
        }
        shop_.do_the_work();
        const order wanted{shop_.numbers->next(), request};
        const auto left = goods_.book_if_any(0, wanted);
        if (!left) {
            return {sale::outcome::sold_out, {}, 0};
        }
        return {sale::outcome::sold, wanted.id, *left};
    }

private:
    shop shop_;
    stock& goods_;
};

}  // namespace

void add_without_distributed_lock(const shop& with, std::vector<named_strategy>& all) {
    all.push_back({"none", std::make_unique<unprotected>(with)});
    all.push_back({"local", std::make_unique<process_local>(with)});
    if (!with.spin_address.empty()) {
        all.push_back({"spin", std::make_unique<tutorial_spin>(with)});
    }
    if (with.sql_goods != nullptr) {
        all.push_back({"conditional", std::make_unique<store_decides>(with, *with.sql_goods)});
    }
    if (with.redis_goods != nullptr) {
        all.push_back({"script", std::make_unique<store_decides>(with, *with.redis_goods)});
    }
}

}  // namespace flash_sale
