#include <redis/net/callback_mark.hpp>

#include <threading/primitives.hpp>
#include <utility>

namespace holdfast::engines::redis {

namespace {

[[nodiscard]] callback_mark*& innermost() noexcept {
    return threading::per_thread<callback_mark*, callback_mark>();
}

}  // namespace

callback_mark::callback_mark(const void* owner) noexcept
    : owner_{owner}, outer_{std::exchange(innermost(), this)} {}

callback_mark::~callback_mark() {
    innermost() = outer_;
}

int callback_mark::depth(const void* owner) noexcept {
    int count = 0;
    for (const callback_mark* each = innermost(); each != nullptr; each = each->outer_) {
        count += each->owner_ == owner ? 1 : 0;
    }
    return count;
}

}  // namespace holdfast::engines::redis
