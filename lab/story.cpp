#include "story.hpp"

#include <utility>

namespace lab {

void story::tell(std::string speaker, std::string text, std::optional<std::uint64_t> token) {
    const std::scoped_lock lock{guard_};
    const auto at = std::chrono::steady_clock::now() - begin_;
    entries_.push_back({std::chrono::duration_cast<std::chrono::milliseconds>(at), std::move(speaker),
                        std::move(text), token});
}

std::vector<entry> story::entries() const {
    const std::scoped_lock lock{guard_};
    return entries_;
}

std::chrono::milliseconds story::now() const {
    const std::scoped_lock lock{guard_};
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begin_);
}

void story::begin() {
    const std::scoped_lock lock{guard_};
    begin_ = std::chrono::steady_clock::now();
}

std::string_view to_string(verdict found) noexcept {
    switch (found) {
        case verdict::broken:
            return "BROKEN";
        case verdict::safe:
            return "SAFE";
        case verdict::limit:
            break;
    }
    return "LIMIT";
}

ending broken_if(bool happened, std::string sentence) {
    if (happened) {
        return {verdict::broken, std::move(sentence)};
    }
    return {verdict::safe, "the flaw did not show; this should have been so: " + sentence};
}

ending safe_if(bool happened, std::string sentence) {
    if (happened) {
        return {verdict::safe, std::move(sentence)};
    }
    return {verdict::broken, "this should have been so, and was not: " + sentence};
}

ending limit_if(bool happened, std::string sentence) {
    auto judged = safe_if(happened, std::move(sentence));
    if (happened) {
        judged.found = verdict::limit;
    }
    return judged;
}

std::string in_ms(std::chrono::nanoseconds time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
}

}  // namespace lab
