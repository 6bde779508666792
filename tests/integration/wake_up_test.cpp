#include <runtime/safety_recheck.hpp>

#include <atomic>
#include <filesystem>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

/// Nobody asks the store again by itself: whoever is not told waits until the test gives up.
class no_safety_net {
public:
    no_safety_net() { detail::safety_recheck = 1h; }
    no_safety_net(const no_safety_net&) = delete;
    no_safety_net& operator=(const no_safety_net&) = delete;
    ~no_safety_net() { detail::safety_recheck = before_; }

private:
    std::chrono::milliseconds before_{detail::safety_recheck.load()};
};

class temporary_directory {
public:
    temporary_directory() { std::filesystem::create_directory(path_); }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory() { std::filesystem::remove_all(path_); }
    [[nodiscard]] std::string path() const { return path_.string(); }

private:
    const std::filesystem::path path_{std::filesystem::temp_directory_path() /
                                      ("holdfast-" + owner_id::random_client().client_text())};
};

/// Two clients of one store, and a thread of each that waits in turn.
class wake_up_test : public ::testing::TestWithParam<const char*> {
protected:
    static constexpr int rounds = 60;

    /// Ends when both have done `work` so often; the deadline of each wait is what fails otherwise.
    template <class Work>
    void in_both(const Work& work) {
        const auto all = [&](client& where) {
            for (int round = 0; round < rounds; ++round) {
                if (!work(where)) {
                    return round;
                }
            }
            return rounds;
        };
        auto other = in_background([&] { return all(two_); });
        auto third = in_background([&] { return all(one_); });
        EXPECT_EQ(all(one_), rounds) << "was not woken";
        EXPECT_EQ(other.get(), rounds) << "was not woken";
        EXPECT_EQ(third.get(), rounds) << "was not woken";
    }

private:
    const no_safety_net off_;
    const temporary_directory directory_;
    const std::string address_{std::string{GetParam()} == "local" ? "local:" + directory_.path()
                                                                  : fresh_store()};

protected:
    client one_{address_};
    client two_{address_};
};

TEST_P(wake_up_test, whoever_waits_for_a_mutex_is_told) {
    in_both([](client& where) {
        mutex stock{where, "stock"};
        return stock.try_acquire_for(patience).has_value();
    });
}

TEST_P(wake_up_test, readers_and_writers_are_told) {
    std::atomic<int> turn{0};
    in_both([&](client& where) {
        shared_mutex prices{where, "prices"};
        return ++turn % 3 == 0 ? prices.try_acquire_for(patience).has_value()
                               : prices.try_acquire_shared_for(patience).has_value();
    });
}

TEST_P(wake_up_test, whoever_waits_for_a_permit_is_told) {
    in_both([](client& where) {
        semaphore slots{where, "slots", 2};
        return slots.try_acquire_for(patience).has_value();
    });
}

TEST_P(wake_up_test, whoever_waits_for_a_latch_is_told) {
    for (int round = 0; round < 20; ++round) {
        latch here{one_, "start"};
        latch there{two_, "start"};
        ASSERT_TRUE(here.try_set(1));
        auto waiter = in_background([&] { return there.wait_for(patience); });
        here.count_down();
        ASSERT_TRUE(waiter.get()) << round;
    }
}

INSTANTIATE_TEST_SUITE_P(stores, wake_up_test, ::testing::Values("memory", "local"),
                         [](const auto& store) { return std::string{store.param}; });

}  // namespace

}  // namespace holdfast::testing
