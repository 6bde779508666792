#include <array>
#include <atomic>
#include <optional>
#include <random>
#include <thread>

#include "stores.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t names = 8;
constexpr std::size_t threads = 16;

/// A second; HOLDFAST_JOINT_SECONDS asks for more.
[[nodiscard]] std::chrono::seconds length() {
    const char* const asked = std::getenv("HOLDFAST_JOINT_SECONDS");
    return std::chrono::seconds{asked != nullptr ? std::atoi(asked) : 1};
}

/// What the locks protect: each must be used by one thread at a time, with rising tokens.
class protected_things {
public:
    void enter(std::size_t which, std::size_t who, fencing_token token) {
        EXPECT_EQ(users_[which].exchange(who + 1), 0U) << "two holders of " << which;
        EXPECT_GT(token.value, tokens_[which].exchange(token.value)) << "token of " << which;
    }
    void leave(std::size_t which, std::size_t who) {
        EXPECT_EQ(users_[which].exchange(0), who + 1) << "somebody else came in: " << which;
    }

private:
    std::array<std::atomic<std::size_t>, names> users_{};
    std::array<std::atomic<std::uint64_t>, names> tokens_{};
};

class multi_lock_stress : public on_any_store {
protected:
    [[nodiscard]] static std::string name_of(std::size_t which) { return "n" + std::to_string(which); }

    /// Some of the names, in any order; two in three times all of them.
    [[nodiscard]] static std::vector<std::size_t> some_names(std::minstd_rand& random) {
        std::vector<std::size_t> chosen(names);
        for (std::size_t which = 0; which < names; ++which) {
            chosen[which] = which;
        }
        std::shuffle(chosen.begin(), chosen.end(), random);
        chosen.resize(random() % 3 == 0 ? 1 + random() % names : names);
        return chosen;
    }

    [[nodiscard]] static std::optional<multi_lease> acquire(multi_lock& all,
                                                            std::chrono::milliseconds wait) {
        try {
            return all.try_acquire_for(wait);
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::outcome_unknown) << error.what();  // no answer by then
            return std::nullopt;
        }
    }

    void work(std::size_t who, const std::stop_token& stop) {
        std::minstd_rand random{static_cast<unsigned>(who) + 1};
        auto& from = who % 2 == 0 ? client_ : other_;
        while (!stop.stop_requested()) {
            const auto chosen = some_names(random);
            std::vector<std::string> asked;
            for (const auto which : chosen) {
                asked.push_back(name_of(which));
            }
            multi_lock all{from, asked};
            // Every now and then somebody gives up in the middle.
            const bool impatient = random() % 8 == 0;
            auto held = acquire(all, impatient ? std::chrono::milliseconds{random() % 4} : patience);
            if (!held) {
                EXPECT_TRUE(impatient) << "a deadlock";
                ++given_up_;
                continue;
            }
            for (const auto which : chosen) {
                things_.enter(which, who, held->token(name_of(which)));
            }
            for (const auto which : chosen) {
                things_.leave(which, who);
            }
            EXPECT_EQ(held->release().worst(), release_outcome::released);
            ++holds_[who];
        }
    }

    protected_things things_;
    std::array<std::atomic<std::uint64_t>, threads> holds_{};
    std::atomic<std::uint64_t> given_up_{0};
};

TEST_P(multi_lock_stress, of_8_names_in_random_orders_by_16_threads) {
    {
        std::vector<std::jthread> all;
        for (std::size_t who = 0; who < threads; ++who) {
            all.emplace_back([this, who](const std::stop_token& stop) { work(who, stop); });
        }
        std::this_thread::sleep_for(length());  // not a guess: the length of the trial
    }
    std::uint64_t total = 0;
    for (const auto& one : holds_) {
        EXPECT_GT(one, 0U) << "a thread that never got its locks";
        total += one;
    }
    std::vector<std::string> everything;
    for (std::size_t which = 0; which < names; ++which) {
        everything.push_back(name_of(which));
    }
    EXPECT_TRUE(all_become_free(everything));
    std::cout << GetParam() << ": " << total << " holds, " << given_up_ << " given up\n";
}

INSTANTIATE_TEST_SUITE_P(joint, multi_lock_stress, ::testing::ValuesIn(tested_schemes()),
                         [](const auto& one) { return one.param; });

}  // namespace

}  // namespace holdfast::testing
