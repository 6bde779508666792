#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <common/net/stream.hpp>
#include <redis/net/request.hpp>
#include <redis/resp/reply_reader.hpp>

namespace holdfast::engines::redis {

/// One physical connection, and what is under way on it.
///
/// Thread safety: everything is guarded by the connection's lock, except `read`, `read_now` and
/// `write_taken`, which belong to whoever has that role: one reader and one writer at a time.
class link {
public:
    enum class reader : std::uint8_t { none, caller, gatherer, background };
    /// Whether a request reached the socket, even if only in part.
    enum class reach : std::uint8_t { unsent, sent };

    /// Requests are collected until there are as many as are under way, or until answers come: many
    /// threads then share a system call, and the server has one half of them to work on while the
    /// callers see to the other. But not for longer than this: a distant server is not waited for.
    static constexpr std::chrono::microseconds longest_collection{100};

    link(std::unique_ptr<net::stream> connected, std::unique_ptr<reply_reader> answers,
         server_facts facts);

    /// False: it has no commands. It is over, then.
    [[nodiscard]] bool append(request& added);
    [[nodiscard]] std::size_t size() const noexcept { return pending_.size(); }
    [[nodiscard]] bool idle() const noexcept { return pending_.empty(); }
    [[nodiscard]] bool collected() const noexcept { return !collected_.empty(); }
    [[nodiscard]] std::uint64_t commands() const noexcept { return commands_; }
    [[nodiscard]] clock::time_point last_write() const noexcept { return last_write_; }

    /// Whether there is something that should be written now.
    [[nodiscard]] bool due(clock::time_point now) const noexcept;
    /// Hands what is collected to the writer.
    void take_for_writing(clock::time_point now);
    /// Writes on, until all is written or the socket takes no more.
    [[nodiscard]] net::io_result write_taken();
    /// The writer's word that the rest of what it took did not reach the socket.
    void not_written() noexcept;
    [[nodiscard]] bool unsent(const request& asked) const noexcept;

    /// Waits for bytes and takes them apart, for `accept_answers`.
    [[nodiscard]] net::io_result read(clock::time_point until, clock::time_point now);
    [[nodiscard]] net::io_result read_now();
    /// Gives the answers to those who asked, in order; `ended` is told of those that have all of
    /// theirs. Fails when there are more answers than questions.
    [[nodiscard]] failure accept_answers(const std::function<void(request&)>& ended);

    /// Forgets a request whose time is over. The answer of one that was sent will be dropped.
    [[nodiscard]] reach abandon(const request& late);
    /// The same for all that `is_late` points out.
    void abandon_all(const std::function<bool(const request&)>& is_late,
                     const std::function<void(request&, reach)>& ended);
    /// Whether the oldest answer is overdue beyond hope.
    [[nodiscard]] bool hopeless(clock::time_point now) const noexcept;
    /// The caller that sleeps and has the longest to wait, if any.
    [[nodiscard]] request* next_reader() const noexcept;
    void each(const std::function<void(request&, reach)>& visit) const;

    [[nodiscard]] net::stream& socket() noexcept { return *socket_; }

    reader reading{reader::none};
    bool writing{};
    /// The socket takes no more; the background goes on when it does.
    bool stuck{};

private:
    struct record {
        /// Nobody, when the answer is to be dropped.
        request* who{};
        std::size_t replies_left{};
        /// The last ones; those before them are ignored.
        std::size_t replies_wanted{};
        /// Where its commands are in the stream of all that was ever written.
        std::uint64_t begins{};
        std::size_t size{};
        clock::time_point hopeless_at{};
    };

    [[nodiscard]] net::io_result absorb(net::io_result result);
    [[nodiscard]] std::size_t under_way() const noexcept {
        return pending_.size() - collected_requests_;
    }
    void drop_unsent(const std::function<bool(const record&)>& unwanted);

    std::unique_ptr<net::stream> socket_;
    std::unique_ptr<reply_reader> answers_;
    server_facts facts_;

    std::string collected_;
    /// Where `collected_` begins in the stream.
    std::uint64_t taken_{};
    std::string in_writing_;
    std::size_t written_{};
    std::deque<record> pending_;
    std::size_t collected_requests_{};
    clock::time_point last_write_{};
    std::uint64_t commands_{};

    std::vector<value> arrived_;
    std::array<char, 16 * 1024> buffer_{};
};

}  // namespace holdfast::engines::redis
