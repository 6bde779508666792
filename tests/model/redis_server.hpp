#pragma once

#include <cstddef>

namespace holdfast::model {

/// The other end of every stream that a scenario opens: answers each line with a line, in order, one
/// after the other, and confirms a subscription to the channel "x". Its thread ends with it.
class redis_server {
public:
    redis_server();
    redis_server(const redis_server&) = delete;
    redis_server& operator=(const redis_server&) = delete;
    ~redis_server();

    /// Says something on the channel that streams have subscribed to.
    void publish();
    /// Hangs up on everybody before it has answered so many lines more.
    void hang_up_after(std::size_t answers);
};

}  // namespace holdfast::model
