#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <common/backoff.hpp>
#include <redis/net/connection.hpp>
#include <redis/net/handshake.hpp>
#include <redis/net/link.hpp>
#include <redis/net/request.hpp>
#include <threading/bell.hpp>
#include <threading/primitives.hpp>

namespace holdfast::engines::redis {

/// What a connection is made of. The functions are in four files: asking and waiting (connection.cpp),
/// moving bytes and ending requests (connection_driver.cpp), the thread in the background
/// (connection_background.cpp), threads that gather answers (connection_gathering.cpp).
///
/// Two roles are handed round, both without the lock held while they are at work:
///   the writer sends what has been collected; anybody, for the length of one system call
///   the reader reads the answers for all: the caller whose own answer is the last to come, a thread
///     that gathers answers from several servers, or the background when nobody waits
/// As long as anything is pending there is a reader, unless nobody is in a hurry and the reading was
/// put off: the next who asks reads, or the background after `put_off_for`.
struct connection::state : std::enable_shared_from_this<connection::state> {
public:
    state(node_address where, connection_settings how, commands greeting, events told);

    void send(encode what, call how, done finished);
    [[nodiscard]] failure connect(clock::time_point deadline);
    void reset(const failure& why);
    void close();
    [[nodiscard]] const node_address& where() const noexcept { return where_; }
    [[nodiscard]] std::uint64_t commands_sent();

private:
    using guard = std::unique_lock<threading::mutex>;
    enum class phase : std::uint8_t { idle, connecting, ready, pausing, closed };

    /// Requests that may be under way or wait for a connection.
    static constexpr std::size_t most_requests = 65'536;
    /// A connection that was silent for longer is looked at before it is used.
    static constexpr std::chrono::seconds trusted_for{1};

    /// Answers that were put off are read by the background when nobody else has come for so long.
    static constexpr std::chrono::milliseconds put_off_for{10};

    // Asking and waiting.
    void submit(std::unique_ptr<request> asked);
    void await_end(request& mine);
    /// Looks after what was collected every now and then, until it is written.
    void follow(request& mine, clock::time_point now, clock::duration until_written);
    void add(request& added, aftermath& after);
    void add_to_link(request& added, aftermath& after);

    // Moving bytes and ending requests.
    void drive(guard& lock, request& mine, clock::time_point now, aftermath& after);
    void write(guard& lock, clock::time_point now, aftermath& after);
    void write_on(guard& lock, const std::shared_ptr<link>& on, aftermath& after);
    void absorb(guard& lock, net::io_result result, aftermath& after);
    void pass_on(aftermath& after);
    void drop(const failure& why, aftermath& after);
    void expire(request& late, aftermath& after);
    void expire_all(clock::time_point now, aftermath& after);
    void end(request& over, failure why, aftermath& after);
    void end_waiting(const failure& why, aftermath& after);
    void settle(aftermath& after);
    void run(request& over);
    [[nodiscard]] bool defer(std::vector<std::unique_ptr<request>>& due);
    [[nodiscard]] failure unanswered(link::reach how_far) const;

    // Leaving the reading to a thread that gathers answers.
    class unread_answers;
    [[nodiscard]] bool leave_to_gatherer();
    [[nodiscard]] bool fetch(const std::shared_ptr<link>& on);
    void end_fetching(const std::shared_ptr<link>& on, bool soon);
    [[nodiscard]] bool put_off() const noexcept;
    [[nodiscard]] bool mind_what_was_put_off();

    // The thread in the background.
    void start_background();
    void wake_background();
    void expect_expiry(clock::time_point deadline);
    void background();
    void serve(guard& lock);
    void attempt(guard& lock);
    [[nodiscard]] failure make_link(std::shared_ptr<link>& made);
    void attempt_failed(const failure& why, aftermath& after);
    void attempt_succeeded(guard& lock, std::shared_ptr<link> made, aftermath& after);
    [[nodiscard]] bool wait_in_attempt(int descriptor, short wanted, clock::time_point until);
    short sleep(guard& lock, int descriptor, short wanted, clock::time_point until);
    void tidy(guard& lock);

    const node_address where_;
    const connection_settings how_;
    const commands greeting_;
    const events told_;
    const std::string name_;

    threading::mutex mutex_;
    phase phase_{phase::idle};
    std::shared_ptr<link> link_;
    /// Those who wait for a connection; nothing of them is encoded yet.
    std::deque<request*> waiting_;
    failure last_failure_;
    backoff backoff_;
    clock::time_point pause_ends_{};
    std::uint64_t generation_{};
    /// Of connections that are gone.
    std::uint64_t commands_before_{};
    std::uint64_t attempts_{};
    threading::condition_variable attempted_;

    threading::jthread thread_;
    bool started_{};
    bool sleeping_{};
    threading::bell bell_;
    /// What the server called the last connection. Only for the background.
    peer_name peer_name_;
    /// When the background looks for requests of those who do not wait that are over time.
    clock::time_point next_expiry_{clock::time_point::max()};
    /// When something was put off last, and when the background looks whether it still is; never, while
    /// it does not mind.
    clock::time_point put_off_at_{};
    clock::time_point minded_{};
    clock::time_point next_minding_{clock::time_point::max()};
    /// Completions that could not be run where they became due.
    std::vector<std::unique_ptr<request>> deferred_;
    std::vector<failure> losses_;

    /// Requests that are over and whose completion has not returned yet.
    threading::atomic<int> running_{0};
};

/// Marks the current thread as one that runs a connection's callback (or, with the address of its
/// `running_`, waits in a call of its), for as long as it exists.
class inside_callback {
public:
    explicit inside_callback(const void* whose) noexcept;
    inside_callback(const inside_callback&) = delete;
    inside_callback& operator=(const inside_callback&) = delete;
    ~inside_callback();

    /// How many callbacks of `whose` are running on this thread, one inside the other.
    [[nodiscard]] static int depth(const void* whose) noexcept;

private:
    const void* whose_;
    inside_callback* outer_;
};

}  // namespace holdfast::engines::redis
