#include <algorithm>
#include <new>
#include <redis/resp/reply_reader.hpp>
#include <utility>

#include <hiredis/hiredis.h>

namespace holdfast::engines::redis {

namespace {

/// What a server announces is believed up to here, beyond only as it arrives.
constexpr std::size_t most_elements_expected = 64;

/// Where hiredis puts what it has read: at the end of the array that it is in, if any. Lists that
/// contain this one do not grow before it is complete, so what was handed out stays where it is.
[[nodiscard]] value& place_for(const redisReadTask& task) {
    if (task.parent == nullptr) {
        return *static_cast<value*>(task.privdata);
    }
    return static_cast<value*>(task.parent->obj)->items.emplace_back();
}

/// hiredis takes null for "out of memory", and knows no exceptions.
template <class Fill>
[[nodiscard]] void* put(const redisReadTask* task, const Fill& fill) noexcept {
    try {
        value& place = place_for(*task);
        fill(place);
        return &place;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

/// The answers are made as `value`s at once, instead of being copied from hiredis' own.
redisReplyObjectFunctions make_values = {
    .createString =
        [](const redisReadTask* task, char* text, std::size_t length) {
            return put(task, [&](value& place) {
                place.type = task->type == REDIS_REPLY_ERROR ? value::kind::error : value::kind::text;
                place.text.assign(text, length);
            });
        },
    // Older versions count in int, newer ones in size_t.
    .createArray =
        [](const redisReadTask* task, auto count) {
            return put(task, [&](value& place) {
                place.type = value::kind::array;
                place.items.reserve(std::min(static_cast<std::size_t>(count), most_elements_expected));
            });
        },
    .createInteger =
        [](const redisReadTask* task, long long number) {
            return put(task, [&](value& place) {
                place.type = value::kind::integer;
                place.integer = number;
            });
        },
    .createNil = [](const redisReadTask* task) { return put(task, [](value&) {}); },
    .freeObject = [](void*) {},
};

}  // namespace

reply_reader::reply_reader() : reader_{::redisReaderCreateWithFunctions(&make_values)} {
    if (reader_ == nullptr) {
        throw std::bad_alloc{};
    }
    reader_->privdata = &answer_;
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
    into = std::exchange(answer_, {});
    return progress::complete;
}

std::string reply_reader::problem() const {
    return static_cast<const char*>(reader_->errstr);
}

}  // namespace holdfast::engines::redis
