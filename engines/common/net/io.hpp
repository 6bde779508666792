#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>

namespace holdfast::engines::net {

/// The result of one attempt to read or to write.
struct io_result {
    enum class status : std::uint8_t {
        done,    ///< `bytes` were moved
        again,   ///< nothing now; try again when the socket is ready for `events`
        closed,  ///< the other end has closed the connection
        failed,
    } outcome{status::done};
    std::size_t bytes{};
    /// again: POLLIN or POLLOUT.
    short events{};
    /// closed, failed: the reason.
    failure error;

    [[nodiscard]] bool lost() const noexcept {
        return outcome == status::closed || outcome == status::failed;
    }
};

/// Waits until a descriptor is ready for the events. False: the deadline came first, or the wait was
/// called off. The thread that opens a connection says how it waits, so that others can wake it.
using waiting = std::function<bool(int descriptor, short events, clock::time_point deadline)>;

/// A `waiting` that nothing calls off.
[[nodiscard]] bool wait_for(int descriptor, short events, clock::time_point deadline);

}  // namespace holdfast::engines::net
