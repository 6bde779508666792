#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>

namespace holdfast {
inline namespace v0 {

struct keyed_executor_options {
    /// Zero: as many as the machine has processors. More than 16 384: `errc::invalid_argument`.
    std::size_t threads{};
    /// How many operations of one key may wait to be begun.
    std::size_t most_per_key{1024};
    /// How many of all keys together.
    std::size_t most_in_all{65536};
};

}  // namespace v0
}  // namespace holdfast

namespace holdfast::detail {
inline namespace v0 {

/// One operation that waits for its turn.
class keyed_work {
public:
    keyed_work() = default;
    keyed_work(const keyed_work&) = delete;
    keyed_work& operator=(const keyed_work&) = delete;
    virtual ~keyed_work() = default;
    /// It will never be begun.
    virtual void drop(const std::exception_ptr& why) noexcept = 0;
};

/// The lanes of a `keyed_executor`: what waits for each key, and the threads that work it off.
///
///     lane   none ──push──▶ ready ──a thread is free──▶ running ──nothing waits──▶ none
///                             ▲                            │
///                             └──────── more waits ────────┘
///
/// A lane that was served goes to the back of the ready ones, so a busy key does not starve the
/// others. A lane with nothing in it is forgotten: memory is bounded by what waits.
///
/// In a forked child there are no threads to run anything, and a mutex may be locked for ever: what is
/// new is refused, and everything else does nothing.
class HOLDFAST_EXPORT keyed_lanes {
public:
    using work = std::unique_ptr<keyed_work>;
    /// Does what waits, in order. Must not throw.
    using runner = std::function<void(const std::string& key, std::vector<work> batch)>;
    enum class admission : unsigned char { accepted, full, stopped, closed, waits_for_itself, forked };

    /// At most `most_at_once` operations of a key are passed to one call of `run`.
    /// `user` is the public class, for the texts of errors.
    keyed_lanes(const char* user, const keyed_executor_options& options, std::size_t most_at_once,
                runner run);
    keyed_lanes(const keyed_lanes&) = delete;
    keyed_lanes& operator=(const keyed_lanes&) = delete;
    /// `close`.
    ~keyed_lanes();

    [[nodiscard]] admission try_push(std::string_view key, work& job);
    /// Waits for room.
    [[nodiscard]] admission push(std::string_view key, work& job, std::stop_token stop);

    void close();
    std::size_t cancel();
    [[nodiscard]] std::size_t waiting() const;

    /// Throws what an admission other than `accepted`, `full` and `stopped` means.
    void raise_refusal(admission why) const;

private:
    class state;
    [[nodiscard]] bool forked() const noexcept;

    /// Left alone in a forked child, which must not destroy it.
    std::unique_ptr<state> state_;
    const char* const user_;
    std::uint32_t generation_;
};

/// Throws `errc::invalid_argument`: there is nobody to hand operations to.
[[noreturn]] HOLDFAST_EXPORT void raise_no_handler();

}  // namespace v0
}  // namespace holdfast::detail
