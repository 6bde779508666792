#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>

namespace holdfast::engines::redis {

/// What came of one attempt to read or to write.
struct io_result {
    enum class outcome : std::uint8_t {
        done,    ///< so many bytes
        again,   ///< not now: when what it wants (POLLIN, POLLOUT) is there
        closed,  ///< the other end is done
        failed,
    } what{outcome::done};
    std::size_t bytes{};
    short wants{};
    /// closed, failed: the words.
    failure why;

    [[nodiscard]] bool lost() const noexcept {
        return what == outcome::closed || what == outcome::failed;
    }
};

/// How whoever makes a connection waits for a descriptor. False: the time is over, or the wait was
/// called off.
using waiting = std::function<bool(int descriptor, short events, clock::time_point until)>;

/// Waits with nobody to call it off; a thread of the user's may do so.
[[nodiscard]] bool wait_for(int descriptor, short events, clock::time_point until);

}  // namespace holdfast::engines::redis
