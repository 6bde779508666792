#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <redis/resp/value.hpp>

struct redisReader;

namespace holdfast::engines::redis {

/// Takes a stream of bytes apart into answers, with hiredis.
class reply_reader {
public:
    enum class progress : std::uint8_t {
        incomplete,  ///< there is no whole answer yet
        complete,
        broken,  ///< what came is not the protocol; the connection cannot be used any more
    };

    reply_reader();
    reply_reader(const reply_reader&) = delete;
    reply_reader& operator=(const reply_reader&) = delete;
    ~reply_reader();

    void feed(std::string_view bytes);
    [[nodiscard]] progress next(value& into);
    /// broken: what is wrong.
    [[nodiscard]] std::string problem() const;

private:
    redisReader* reader_;
    /// The one that is being read.
    value answer_;
};

}  // namespace holdfast::engines::redis
