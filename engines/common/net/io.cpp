#include <common/net/io.hpp>
#include <common/poll_timeout.hpp>

#include <poll.h>

namespace holdfast::engines::net {

bool wait_for(int descriptor, short events, clock::time_point deadline) {
    for (;;) {
        ::pollfd watched{.fd = descriptor, .events = events, .revents = 0};
        const auto now = clock::now();
        if (::poll(&watched, 1, poll_timeout(deadline, now)) > 0) {
            return true;
        }
        if (now >= deadline) {
            return false;
        }
    }
}

}  // namespace holdfast::engines::net
