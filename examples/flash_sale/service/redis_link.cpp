#include "redis_link.hpp"

#include <array>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <holdfast/error.hpp>

namespace flash_sale {

namespace {

constexpr std::string_view scheme{"redis://"};
constexpr timeval connect_patience{2, 0};
constexpr timeval answer_patience{5, 0};

}  // namespace

redis_link::redis_link(const std::string& address) {
    const auto colon = address.rfind(':');
    if (!address.starts_with(scheme) || colon < scheme.size()) {
        throw std::runtime_error{"\"" + address + "\" is not redis://host:port"};
    }
    host_ = address.substr(scheme.size(), colon - scheme.size());
    port_ = std::stoi(address.substr(colon + 1));
    open();
}

void redis_link::open() {
    context_.reset(::redisConnectWithTimeout(host_.c_str(), port_, connect_patience));
    if (!context_ || context_->err != 0) {
        const std::string reason{context_ ? context_->errstr : "out of memory"};
        throw std::system_error{make_error_code(holdfast::errc::store_unavailable),
                                host_ + ":" + std::to_string(port_) + ": " + reason};
    }
    ::redisSetTimeout(context_.get(), answer_patience);
}

redisContext* redis_link::connected() {
    if (!context_ || context_->err != 0) {
        open();
    }
    return context_.get();
}

redis_link::reply redis_link::command(std::span<const std::string_view> words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const auto& word : words) {
        texts.push_back(word.data());
        lengths.push_back(word.size());
    }
    auto* const context = connected();
    reply said{static_cast<redisReply*>(
        ::redisCommandArgv(context, static_cast<int>(words.size()), texts.data(), lengths.data()))};
    if (!said) {
        throw std::system_error{make_error_code(holdfast::errc::outcome_unknown), context->errstr};
    }
    if (said->type == REDIS_REPLY_ERROR) {
        throw std::system_error{make_error_code(holdfast::errc::store_error), said->str};
    }
    return said;
}

}  // namespace flash_sale
