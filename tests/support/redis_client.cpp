#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/time.h>

#include <ctime>
#include <stdexcept>
#include <support/redis_client.hpp>

namespace holdfast::testing_support {

namespace {

constexpr timeval connect_limit{5, 0};
constexpr timeval answer_limit{20, 0};

/// hiredis writes to connections that the server may have closed. The signal that follows is swallowed
/// here and not ignored for good: the code under test has to do without.
class no_broken_pipe {
public:
    no_broken_pipe() noexcept {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    no_broken_pipe(const no_broken_pipe&) = delete;
    no_broken_pipe& operator=(const no_broken_pipe&) = delete;
    ~no_broken_pipe() {
        const timespec at_once{};
        while (::sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

private:
    sigset_t pipe_{};
    sigset_t before_{};
};

redis_reply copy_of(const redisReply& source) {
    using kind = redis_reply::kind;
    redis_reply copy;
    switch (source.type) {
        case REDIS_REPLY_INTEGER:
            copy.type = kind::integer;
            copy.integer = source.integer;
            break;
        case REDIS_REPLY_STRING:
        case REDIS_REPLY_STATUS:
            copy.type = kind::text;
            copy.text.assign(source.str, static_cast<std::size_t>(source.len));
            break;
        case REDIS_REPLY_ERROR:
            copy.type = kind::error;
            copy.text.assign(source.str, static_cast<std::size_t>(source.len));
            break;
        case REDIS_REPLY_ARRAY:
            copy.type = kind::array;
            for (std::size_t index = 0; index < source.elements; ++index) {
                copy.items.push_back(copy_of(*source.element[index]));
            }
            break;
        default:
            break;
    }
    return copy;
}

redis_reply taken(void* raw, const redisContext& context) {
    if (raw == nullptr) {
        throw std::runtime_error{std::string{"the server does not answer: "} + context.errstr};
    }
    const std::unique_ptr<redisReply, void (*)(void*)> reply{static_cast<redisReply*>(raw),
                                                             freeReplyObject};
    return copy_of(*reply);
}

}  // namespace

std::string redis_reply::as_text() const {
    switch (type) {
        case kind::nil:
            return "";
        case kind::integer:
            return std::to_string(integer);
        case kind::text:
        case kind::error:
            return text;
        case kind::array:
            break;
    }
    std::string lines;
    for (const auto& item : items) {
        lines += (lines.empty() ? "" : "\n") + item.as_text();
    }
    return lines;
}

void redis_client::close::operator()(redisContext* context) const noexcept {
    redisFree(context);
}

redis_client::redis_client(std::uint16_t port)
    : context_{redisConnectWithTimeout("127.0.0.1", port, connect_limit)} {
    start();
}

redis_client::redis_client(const std::filesystem::path& socket)
    : context_{redisConnectUnixWithTimeout(socket.c_str(), connect_limit)} {
    start();
}

void redis_client::start() {
    if (!context_ || context_->err != 0) {
        throw std::runtime_error{std::string{"cannot connect: "} +
                                 (context_ ? context_->errstr : "no memory")};
    }
    redisSetTimeout(context_.get(), answer_limit);
}

redis_reply redis_client::command(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const auto& word : words) {
        texts.push_back(word.data());
        lengths.push_back(word.size());
    }
    const no_broken_pipe guard;
    return taken(
        redisCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), lengths.data()),
        *context_);
}

redis_reply redis_client::next_message() {
    void* raw = nullptr;
    redisGetReply(context_.get(), &raw);
    return taken(raw, *context_);
}

}  // namespace holdfast::testing_support
