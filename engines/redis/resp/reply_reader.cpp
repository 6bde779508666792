#include <new>
#include <redis/resp/reply_reader.hpp>

#include <hiredis/hiredis.h>

namespace holdfast::engines::redis {

namespace {

/// hiredis itself refuses answers that are nested more than a few levels deep.
void convert(const redisReply& from, value& into) {  // NOLINT(misc-no-recursion)
    switch (from.type) {
        case REDIS_REPLY_INTEGER:
            into.type = value::kind::integer;
            into.integer = from.integer;
            break;
        case REDIS_REPLY_ARRAY:
            into.type = value::kind::array;
            into.items.resize(from.elements);
            for (std::size_t index = 0; index < from.elements; ++index) {
                convert(*from.element[index], into.items[index]);
            }
            break;
        case REDIS_REPLY_STRING:
        case REDIS_REPLY_STATUS:
            into.type = value::kind::text;
            into.text.assign(from.str, from.len);
            break;
        case REDIS_REPLY_ERROR:
            into.type = value::kind::error;
            into.text.assign(from.str, from.len);
            break;
        default:
            into.type = value::kind::nil;
            break;
    }
}

}  // namespace

reply_reader::reply_reader() : reader_{::redisReaderCreate()} {
    if (reader_ == nullptr) {
        throw std::bad_alloc{};
    }
}

reply_reader::~reply_reader() {
    ::redisReaderFree(reader_);
}

void reply_reader::feed(std::string_view bytes) {
    ::redisReaderFeed(reader_, bytes.data(), bytes.size());
}

reply_reader::progress reply_reader::next(value& into) {
    void* raw = nullptr;
    if (::redisReaderGetReply(reader_, &raw) != REDIS_OK) {
        return progress::broken;
    }
    if (raw == nullptr) {
        return progress::incomplete;
    }
    const std::unique_ptr<void, decltype(&::freeReplyObject)> reply{raw, &::freeReplyObject};
    convert(*static_cast<const redisReply*>(raw), into);
    return progress::complete;
}

std::string reply_reader::problem() const {
    return static_cast<const char*>(reader_->errstr);
}

}  // namespace holdfast::engines::redis
