#include <common/poll_timeout.hpp>
#include <redis/net/io.hpp>

#include <poll.h>

namespace holdfast::engines::redis {

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
