#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <common/backoff.hpp>
#include <common/net/io.hpp>
#include <common/net/stream.hpp>
#include <holdfast/error.hpp>
#include <redis/net/settings.hpp>
#include <redis/resp/reply_reader.hpp>
#include <redis/topology/sentinel_dialogue.hpp>
#include <threading/bell.hpp>

namespace holdfast::engines::redis {

/// Asks one sentinel who the master is, and hears from it when that changes.
///
/// Asks when the connection is made, when `ask` is called (at once, then with growing, jittered pauses
/// of up to one second), and every few seconds anyway: a sentinel that died without a word is noticed,
/// and no change is missed for long.
///
/// Thread safety: all functions may be called from any thread. Callbacks run on the informer's thread
/// with no lock held. The destructor returns when none is running.
class sentinel_informer {
public:
    struct events {
        std::function<void(const sentinel_view& view)> told;
        /// The sentinel cannot be asked. Told for every attempt.
        std::function<void(const failure& reason)> silent;
    };

    /// `how.login` is the sentinel's, not the servers'.
    sentinel_informer(node_address where, connection_settings settings, std::string service,
                      events told);
    sentinel_informer(const sentinel_informer&) = delete;
    sentinel_informer& operator=(const sentinel_informer&) = delete;
    ~sentinel_informer();

    void ask();
    /// Asks at once how the group of sentinels is. `done` runs exactly once, by `until`.
    void check(clock::time_point until, std::function<void(sentinel_checkup)> done);

private:
    /// Between questions that nothing has prompted.
    static constexpr std::chrono::seconds usual_pause{3};
    /// Between questions, and between attempts to connect, while there is trouble.
    static constexpr std::chrono::seconds longest_pause{1};
    /// For the answer to a question.
    static constexpr std::chrono::seconds patience{1};
    /// For finding out whether one that says nothing expects TLS.
    static constexpr std::chrono::milliseconds for_guess{200};

    void run();
    /// Until the connection is of no use; why.
    [[nodiscard]] failure converse();
    [[nodiscard]] failure talk();
    /// In place of a failure before the first word of the sentinel's.
    [[nodiscard]] failure explain_silence(failure reason);
    [[nodiscard]] failure send(const std::string& bytes);
    [[nodiscard]] failure receive();
    [[nodiscard]] failure accept(const value& answer);
    [[nodiscard]] failure put_question();
    enum class interruption : std::uint8_t { end, check, wish };
    /// False when the time is over, or somebody interrupts: with a check, or with a wish of any kind.
    [[nodiscard]] bool wait(int descriptor, short awaited, clock::time_point until,
                            interruption by = interruption::end);
    void note_wish();

    struct check_wish {
        clock::time_point until;
        std::function<void(sentinel_checkup)> done;
        /// The sentinel has been asked.
        bool asked{};
    };
    [[nodiscard]] bool check_wanted();
    /// Whether there is one.
    [[nodiscard]] bool begin_checks();
    /// Tells those that `are_over` points out.
    void end_checks(const std::function<bool(const check_wish&)>& are_over,
                    const sentinel_checkup& said);
    void fail_checks(failure reason);
    /// Ends those whose time is over. When that is so of the next.
    [[nodiscard]] clock::time_point end_late_checks(clock::time_point now);

    const node_address where_;
    const connection_settings settings_;
    const events told_;

    std::unique_ptr<net::stream> stream_;
    std::unique_ptr<reply_reader> reader_;
    /// The sentinel has said something, on this connection or on one before.
    bool heard_{};
    sentinel_dialogue dialogue_;
    backoff reconnecting_;
    backoff asking_;
    clock::time_point asked_at_{};
    clock::time_point ask_at_{};

    std::mutex checks_guard_;
    std::vector<check_wish> checks_;

    threading::bell bell_;
    std::atomic<bool> wanted_{false};
    std::atomic<bool> stopping_{false};
    std::jthread thread_;
};

}  // namespace holdfast::engines::redis
