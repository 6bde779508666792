#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace flash_sale {

/// A blocking connection to one Redis server, opened again when it broke.
///
/// Errors: `std::system_error`. Thread safety: none.
class redis_link {
public:
    struct free_reply {
        void operator()(redisReply* reply) const noexcept { ::freeReplyObject(reply); }
    };
    using reply = std::unique_ptr<redisReply, free_reply>;

    /// `redis://host:port`
    explicit redis_link(const std::string& address);

    reply command(std::span<const std::string_view> words);
    /// For the guards. Connected, as far as is known.
    [[nodiscard]] redisContext* connected();

private:
    struct free_context {
        void operator()(redisContext* context) const noexcept { ::redisFree(context); }
    };
    void open();

    std::string host_;
    int port_{};
    std::unique_ptr<redisContext, free_context> context_;
};

}  // namespace flash_sale
