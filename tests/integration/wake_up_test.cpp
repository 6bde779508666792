#include <algorithm>
#include <filesystem>
#include <utility>

#include <support/no_safety_net.hpp>

#include "stage.hpp"

namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

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

/// Two clients of one store: one holds, the other waits.
class wake_up_test : public ::testing::TestWithParam<const char*> {
protected:
    static constexpr int rounds = 10;

    /// Lets `wait` run in the background until it waits for `name`, then `let_go`. Whoever is not told
    /// waits until the deadline of its call, and says false.
    template <class Wait, class LetGo>
    [[nodiscard]] bool is_woken(const std::string& name, const Wait& wait, const LetGo& let_go) {
        auto waiter = in_background([&] { return std::pair{wait(), clock::now()}; });
        const bool waits = eventually([&] { return holder_.inspect(name).waiters > 0; });
        const auto began = clock::now();
        let_go();
        const auto [woken, when] = waiter.get();
        quickest_ = std::min<clock::duration>(quickest_, when - began);
        return woken && waits;
    }
    /// Of all rounds: a loaded machine may be slow now and then, but not each time.
    void TearDown() override { EXPECT_LT(quickest_, 500ms); }

private:
    clock::duration quickest_{clock::duration::max()};
    const no_safety_net off_;
    const temporary_directory directory_;
    const std::string address_{std::string{GetParam()} == "local" ? "local:" + directory_.path()
                                                                  : fresh_store()};

protected:
    client holder_{address_};
    client waiter_{address_};
};

TEST_P(wake_up_test, whoever_waits_for_a_mutex_is_told) {
    mutex here{holder_, "stock"};
    mutex there{waiter_, "stock"};
    for (int round = 0; round < rounds; ++round) {
        auto held = here.acquire();
        ASSERT_TRUE(is_woken(
            "stock", [&] { return there.try_acquire_for(patience).has_value(); },
            [&] { held.release(); }));
    }
}

TEST_P(wake_up_test, a_writer_is_told_when_the_reader_leaves) {
    shared_mutex here{holder_, "prices"};
    shared_mutex there{waiter_, "prices"};
    for (int round = 0; round < rounds; ++round) {
        auto held = here.acquire_shared();
        ASSERT_TRUE(is_woken(
            "prices", [&] { return there.try_acquire_for(patience).has_value(); },
            [&] { held.release(); }));
    }
}

TEST_P(wake_up_test, a_reader_is_told_when_the_writer_leaves) {
    shared_mutex here{holder_, "prices"};
    shared_mutex there{waiter_, "prices"};
    for (int round = 0; round < rounds; ++round) {
        auto held = here.acquire();
        ASSERT_TRUE(is_woken(
            "prices", [&] { return there.try_acquire_shared_for(patience).has_value(); },
            [&] { held.release(); }));
    }
}

TEST_P(wake_up_test, whoever_waits_for_a_permit_is_told) {
    semaphore here{holder_, "slots", 1};
    semaphore there{waiter_, "slots", 1};
    for (int round = 0; round < rounds; ++round) {
        auto held = here.acquire();
        ASSERT_TRUE(is_woken(
            "slots", [&] { return there.try_acquire_for(patience).has_value(); },
            [&] { held.release(); }));
    }
}

TEST_P(wake_up_test, whoever_waits_for_a_latch_is_told) {
    latch here{holder_, "start"};
    latch there{waiter_, "start"};
    for (int round = 0; round < rounds; ++round) {
        ASSERT_TRUE(here.try_set(1));
        ASSERT_TRUE(is_woken(
            "start", [&] { return there.wait_for(patience); }, [&] { here.count_down(); }));
    }
}

INSTANTIATE_TEST_SUITE_P(stores, wake_up_test, ::testing::Values("memory", "local"),
                         [](const auto& store) { return std::string{store.param}; });

}  // namespace

}  // namespace holdfast::testing
