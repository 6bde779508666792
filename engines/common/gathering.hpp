#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <holdfast/clock.hpp>
#include <holdfast/export.hpp>

namespace holdfast::engines {

/// Answers that are due on one connection, for a thread to fetch that waits for them. Whoever has it is
/// the connection's only reader; the destructor hands that on at once.
class HOLDFAST_EXPORT unread {
public:
    unread() = default;
    unread(const unread&) = delete;
    unread& operator=(const unread&) = delete;
    virtual ~unread() = default;

    /// Can be read when there is something to fetch.
    [[nodiscard]] virtual int descriptor() const noexcept = 0;
    /// Takes what is there, without waiting, and runs the completions that are due. False when nothing
    /// is left to be fetched here.
    [[nodiscard]] virtual bool fetch() = 0;
    /// Nobody is in a hurry any more: whoever uses the connection next may read it, or the engine does
    /// a little later. Nothing is to be fetched here after that.
    virtual void put_off() = 0;
};

/// A thread that asks several stores and then waits for all of them at once.
///
/// Calls that must not block are normally answered by threads of the engines'. While a gathering exists
/// on the thread that makes them, an engine may leave the reading to that thread instead: nobody has to
/// be woken to read what the thread itself waits for.
///
/// Thread safety: only for the thread that made it.
class HOLDFAST_EXPORT gathering {
public:
    gathering() noexcept;
    gathering(const gathering&) = delete;
    gathering& operator=(const gathering&) = delete;
    ~gathering();

    /// This thread's, if it has one.
    [[nodiscard]] static gathering* here() noexcept;

    void add(std::unique_ptr<unread> answers) { unread_.push_back(std::move(answers)); }
    [[nodiscard]] std::size_t size() const noexcept { return unread_.size(); }
    /// Fetches what comes until `enough`, or until nothing is left to fetch, or until the deadline.
    void fetch_until(const std::function<bool()>& enough, clock::time_point deadline);
    void put_off();

private:
    void fetch_what_comes(clock::time_point deadline);

    gathering* const outer_;
    std::vector<std::unique_ptr<unread>> unread_;
};

}  // namespace holdfast::engines
