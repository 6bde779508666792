#include <local/wake_map.hpp>
#include <threading/primitives.hpp>

#include <array>
#include <filesystem>

#include "waiting_test.hpp"

#include <unistd.h>

namespace holdfast::engines::local {

namespace {

using model::expect_refuted;
using model::expect_sound;

constexpr process_ref dead{.pid = 1'000'000, .start_time = 1, .pid_namespace = 1};
constexpr process_ref alive{.pid = 1, .start_time = 2, .pid_namespace = 1};

/// A store's wake map, and the database in which a name is taken or free. Every execution that ends
/// well leaves the map as it found it.
class stage {
public:
    stage() {
        // The map remembers how many entries were ever used.
        std::array<std::size_t, 4> all{};
        for (auto& each : all) {
            each = map_.add_waiter(1);
        }
        for (const auto each : all) {
            map_.remove_waiter(each);
        }
    }
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;
    ~stage() { std::filesystem::remove(path_); }

    void begin() {
        const model::preparation before;
        taken.store(true);
    }
    /// Of a process that was killed.
    void leave_a_dead_waiter(std::uint64_t key) {
        const model::preparation before;
        static_cast<void>(killed_.add_waiter(key));
    }

    /// What a watcher does until its name is free.
    void wait_for(std::uint64_t key) {
        const auto place = map_.add_waiter(key);
        auto seen = map_.sequence(key);
        while (taken.load(std::memory_order_seq_cst)) {
            const auto word = map_.word();
            if (const auto now = map_.sequence(key); now != seen) {
                seen = now;
                continue;
            }
            map_.sleep(word);
        }
        map_.remove_waiter(place);
    }
    void free(std::uint64_t key) {
        taken.store(false, std::memory_order_seq_cst);
        map_.announce(key);
    }
    wake_map& map() { return map_; }

    threading::atomic<bool> taken{true};

private:
    static const std::string& opened_to_others(wake_map& map, const std::string& path) {
        map.let_others_in();
        return path;
    }

    const std::string path_{
        (std::filesystem::temp_directory_path() / ("holdfast-model-" + std::to_string(::getpid())))
            .string()};
    wake_map map_{path_, alive};
    wake_map killed_{opened_to_others(map_, path_), dead};
};

constexpr std::uint64_t key = 7;
constexpr std::uint64_t other_key = 8;

using scenario = void (*)(stage&);

void one_waits_and_one_frees(stage& all) {
    model::spawn([&] { all.wait_for(key); });
    model::spawn([&] { all.free(key); });
}

void one_waits_while_another_name_is_freed(stage& all) {
    model::spawn([&] { all.wait_for(key); });
    model::spawn([&] {
        all.map().announce(other_key);
        all.free(key);
    });
}

/// Two tidy up after the same dead waiter. The entry is used again by others meanwhile.
void two_tidy_up(stage& all) {
    all.leave_a_dead_waiter(key);
    model::spawn([&] { all.map().forget_dead_waiters(); });
    model::spawn([&] {
        all.map().forget_dead_waiters();
        all.map().remove_waiter(all.map().add_waiter(key));
        all.wait_for(other_key);
    });
    model::spawn([&] { all.free(other_key); });
}

[[nodiscard]] std::function<void()> on(stage& all, scenario what) {
    return [&all, what] {
        all.begin();
        what(all);
    };
}

TEST(model_wake_map, whoever_waits_is_woken) {
    stage all;
    expect_sound(on(all, one_waits_and_one_frees));
    expect_sound(on(all, one_waits_while_another_name_is_freed), {.preemptions = 3});
}

TEST(model_wake_map, tidying_up_hides_no_waiter) {
    stage all;
    expect_sound(on(all, two_tidy_up), {.preemptions = 2});
}

TEST(model_wake_map, mistakes_are_found) {
    {
        stage all;
        expect_refuted("sleepers are woken for the same word", on(all, one_waits_and_one_frees));
    }
    stage all;
    expect_refuted("a hidden entry is put back by a plain store", on(all, two_tidy_up),
                   {.preemptions = 3});
}

}  // namespace

}  // namespace holdfast::engines::local

/// In place of the one that looks into /proc.
holdfast::liveness holdfast::engines::liveness_of(const process_ref& process, const process_ref&) {
    return process == local::dead ? liveness::dead : liveness::alive;
}
