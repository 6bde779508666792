#include <algorithm>
#include <redis/net/io.hpp>

#include <poll.h>

namespace holdfast::engines::redis {

using namespace std::chrono_literals;

int poll_timeout(clock::time_point until, clock::time_point now) noexcept {
    if (until <= now) {
        return 0;
    }
    if (until == clock::time_point::max()) {
        return -1;
    }
    const auto left = std::min<clock::duration>(until - now, 1s);
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

bool wait_for(int descriptor, short events, clock::time_point until) {
    for (;;) {
        ::pollfd watched{.fd = descriptor, .events = events, .revents = 0};
        const auto now = clock::now();
        if (::poll(&watched, 1, poll_timeout(until, now)) > 0) {
            return true;
        }
        if (now >= until) {
            return false;
        }
    }
}

}  // namespace holdfast::engines::redis
