#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <common/net/stream.hpp>
#include <redis/net/pipeline.hpp>
#include <redis/resp/reply_reader.hpp>
#include <threading/primitives.hpp>

namespace holdfast::engines::redis {

/// One physical connection: a socket, the requests on it, and the threads that write and read for all.
///
///   the writer sends what was collected; any thread, for the length of one system call
///   the reader reads the answers for all: the caller whose own answer comes last, a thread that
///   gathers
///     answers from several servers, or the background when no caller waits
///
/// While a request is pending there is a reader, unless nobody is in a hurry and the reading was put
/// off. Then the next caller reads, or the background after `put_off_for`.
///
/// Thread safety: the connection's lock guards everything. Functions that take a `guard` release it
/// while they read or write.
class link : public std::enable_shared_from_this<link> {
public:
    using guard = std::unique_lock<threading::mutex>;
    enum class reader : std::uint8_t { none, caller, gatherer, background };

    /// The connection that the link belongs to. Called with its lock held, except `settle`.
    class keeper : public std::enable_shared_from_this<keeper> {
    public:
        keeper() = default;
        keeper(const keeper&) = delete;
        keeper& operator=(const keeper&) = delete;
        virtual ~keeper() = default;

        /// The request is over, with its answers or with an error.
        virtual void end(request& over, failure error, aftermath& after) = 0;
        virtual void settle(aftermath& after) = 0;
        /// The link cannot be used any more.
        virtual void drop(const failure& reason, aftermath& after) = 0;
        virtual void wake_background() = 0;
    };

    link(std::unique_ptr<net::stream> connected, std::unique_ptr<reply_reader> answers,
         server_facts facts, std::string name, keeper& owner, threading::mutex& mutex);

    [[nodiscard]] pipeline& requests() noexcept { return requests_; }
    [[nodiscard]] net::stream& socket() noexcept { return *socket_; }
    [[nodiscard]] reader reading() const noexcept { return reading_; }
    /// The socket takes no more now. The background goes on when it does.
    [[nodiscard]] bool stuck() const noexcept { return stuck_; }

    /// Writes what is due, unless another thread is writing.
    void write(guard& lock, clock::time_point now, aftermath& after);
    /// Goes on with the write that is under way.
    void write_on(guard& lock, aftermath& after);

    /// Makes the caller of `asked` the reader, if one is needed.
    void let_caller_read(request& asked) noexcept;
    /// Finds a reader other than a caller, if one is needed.
    void let_others_read();
    /// The caller reads for all until it is told otherwise.
    void read_as_caller(guard& lock, request& own, clock::time_point now, aftermath& after);
    /// Reads what is there, if the background is the reader. False: nothing was there.
    [[nodiscard]] bool read_as_background(guard& lock, aftermath& after);
    /// The reader leaves: another thread takes its place.
    void pass_on(aftermath& after);

    /// When the background looks whether the reading is still put off.
    [[nodiscard]] clock::time_point next_look() const noexcept { return next_look_; }
    /// Makes the background the reader if the reading was put off for long enough, or if a request
    /// expires.
    [[nodiscard]] bool take_over_reading(clock::time_point next_expiry);

    /// Ends a request whose deadline has passed.
    void expire(request& late, aftermath& after);
    /// Ends all such requests of callers that do not block. Returns the next deadline of those left.
    [[nodiscard]] clock::time_point expire_all(clock::time_point now, aftermath& after);
    /// Closes the socket. Nothing is done here any more. Requests stay for their owner to end.
    void close(bool discards_unsent) noexcept;

private:
    class unread_answers;

    /// Answers whose reading was put off are read by the background when nobody else has come for so
    /// long.
    static constexpr std::chrono::milliseconds put_off_for{10};

    // Without the lock: for the writer, and for the reader.
    [[nodiscard]] net::io_result write_taken();
    [[nodiscard]] net::io_result read(clock::time_point until, clock::time_point now);
    [[nodiscard]] net::io_result read_now();
    [[nodiscard]] net::io_result take_apart(net::io_result result);

    void take_for_writing(clock::time_point now);
    void accept(guard& lock, net::io_result result, aftermath& after);
    void let_background_read();
    [[nodiscard]] bool let_gatherer_read();
    [[nodiscard]] bool fetch();
    void end_fetching(bool at_once);
    [[nodiscard]] failure unanswered(pipeline::reach reached) const;

    const std::string name_;
    keeper& owner_;
    threading::mutex& mutex_;
    std::unique_ptr<net::stream> socket_;
    std::unique_ptr<reply_reader> answers_;
    pipeline requests_;
    reader reading_{reader::none};
    bool writing_{};
    bool stuck_{};
    bool closed_{};

    /// When the reading was put off last, and when the background looks again; `max`: it does not.
    clock::time_point put_off_at_{};
    clock::time_point seen_put_off_at_{};
    clock::time_point next_look_{clock::time_point::max()};

    /// Only for the writer.
    std::string in_writing_;
    std::size_t written_{};
    /// Only for the reader.
    std::vector<value> arrived_;
    std::array<char, 16 * 1024> buffer_{};
};

}  // namespace holdfast::engines::redis
