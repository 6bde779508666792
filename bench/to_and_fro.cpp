#include "to_and_fro.hpp"

#include <array>
#include <atomic>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <thread>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace bench {

namespace {

constexpr std::size_t hand_overs = 2000;
/// Hand-overs of one kind before the next kind has its turn.
constexpr std::size_t in_a_row = 10;
/// Long enough for the other to ask, to be refused and to fall asleep.
constexpr std::chrono::microseconds held_for{1000};
/// Long enough for the other to get the lock before it is wanted again.
constexpr std::chrono::microseconds busy_elsewhere_for{400};

/// What both processes see of one kind of lock.
struct column {
    std::atomic<std::int64_t> unlocked_at{0};
    std::array<std::atomic<std::size_t>, 2> count{};
    std::array<std::array<std::int64_t, hand_overs>, 2> times{};
};

struct board {
    /// How many rows of turns each of the processes has begun.
    std::array<std::atomic<std::size_t>, 2> rows_begun{};
    std::array<column, kinds_of_lock> columns{};
};

class shared_board {
public:
    shared_board()
        : memory_{::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                         0)} {
        if (memory_ == MAP_FAILED) {
            throw std::runtime_error{"no memory for two processes"};
        }
        board_ = new (memory_) board;
    }
    shared_board(const shared_board&) = delete;
    shared_board& operator=(const shared_board&) = delete;
    ~shared_board() { ::munmap(memory_, sizeof(board)); }
    [[nodiscard]] board& operator*() const noexcept { return *board_; }

private:
    void* memory_;
    board* board_;
};

[[nodiscard]] std::int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1};
}

void take_turn(column& both, std::size_t me, const contender& lock) {
    const auto asked_at = now();
    lock.lock();
    const auto got_at = now();
    if (const auto unlocked_at = both.unlocked_at.load(); unlocked_at > asked_at) {
        both.times[me][both.count[me]++] = got_at - unlocked_at;
    }
    std::this_thread::sleep_for(held_for);  // not a guess: the length of a hold
    both.unlocked_at.store(now());
    lock.unlock();
    std::this_thread::sleep_for(busy_elsewhere_for);  // not a guess: the time between two holds
}

/// Waits until both processes are at the same kind of lock: only then do they contend.
void begin_row(board& both, std::size_t me) {
    const auto row = both.rows_begun[me].fetch_add(1) + 1;
    for (int look = 0; look < 100'000 && both.rows_begun[1 - me].load() < row; ++look) {
        std::this_thread::sleep_for(std::chrono::microseconds{100});  // not a guess: looked at again
    }
}

void take_turns(board& both, int process, const contenders& locks) {
    const auto me = static_cast<std::size_t>(process);
    for (std::size_t turn = 0; turn < hand_overs; ++turn) {
        if (turn % in_a_row == 0) {
            begin_row(both, me);
        }
        const auto kind = turn / in_a_row % locks.size();
        take_turn(both.columns.at(kind), me, locks.at(kind));
    }
}

[[nodiscard]] pid_t start(board& both, int process, const std::function<contenders(int)>& make) {
    std::cout.flush();  // or both would say what is in there
    const auto child = ::fork();
    if (child != 0) {
        return child;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        take_turns(both, process, make(process));
    } catch (const std::exception& error) {
        std::cerr << "bench: " << error.what() << '\n';
        ::_exit(1);
    }
    ::_exit(0);
}

}  // namespace

std::vector<std::vector<nanoseconds>> to_and_fro(const std::function<contenders(int process)>& make) {
    const shared_board both;
    const std::array children{start(*both, 0, make), start(*both, 1, make)};
    bool well = true;
    for (const auto child : children) {
        int status = 0;
        well = ::waitpid(child, &status, 0) == child && status == 0 && well;
    }
    std::vector<std::vector<nanoseconds>> all;
    for (const auto& one : (*both).columns) {
        auto& times = all.emplace_back();
        for (std::size_t process = 0; process < children.size(); ++process) {
            for (std::size_t i = 0; i < one.count[process]; ++i) {
                times.emplace_back(static_cast<double>(one.times[process][i]));
            }
        }
        well = well && times.size() >= hand_overs / 20;
    }
    if (!well) {
        throw std::runtime_error{"two processes could not hand a lock to and fro"};
    }
    return all;
}

}  // namespace bench
