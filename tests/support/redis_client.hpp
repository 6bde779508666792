#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisContext;

/// A plain, blocking way to talk to a server, for tests that look at it from outside.
namespace holdfast::testing_support {

struct redis_reply {
    enum class kind : std::uint8_t { nil, integer, text, error, array } type{kind::nil};
    std::int64_t integer{};
    std::string text;
    std::vector<redis_reply> items;

    [[nodiscard]] bool is_error() const noexcept { return type == kind::error; }
    [[nodiscard]] bool is_nil() const noexcept { return type == kind::nil; }
    /// As redis-cli writes it when its output is not a terminal: elements on lines of their own.
    [[nodiscard]] std::string as_text() const;
};

/// Thread safety: none.
class redis_client {
public:
    /// Throws `std::runtime_error` when nobody answers.
    explicit redis_client(std::uint16_t port);
    explicit redis_client(const std::filesystem::path& socket);
    redis_client(redis_client&&) noexcept = default;
    redis_client& operator=(redis_client&&) noexcept = default;
    ~redis_client() = default;

    /// Sends a command and waits for its answer. Throws when the connection breaks or the server stays
    /// silent; an error that the server answers is an ordinary reply.
    redis_reply command(const std::vector<std::string>& words);
    /// Waits for one more answer: a message, after SUBSCRIBE.
    redis_reply next_message();

private:
    struct close {
        void operator()(redisContext* context) const noexcept;
    };
    void start();

    std::unique_ptr<redisContext, close> context_;
};

}  // namespace holdfast::testing_support
