#pragma once

namespace holdfast::engines::redis {

/// Marks the current thread, for as long as it exists: the thread runs a callback of `owner`, or waits
/// in a call of `owner`.
class callback_mark {
public:
    explicit callback_mark(const void* owner) noexcept;
    callback_mark(const callback_mark&) = delete;
    callback_mark& operator=(const callback_mark&) = delete;
    ~callback_mark();

    /// How many marks of `owner` this thread has.
    [[nodiscard]] static int depth(const void* owner) noexcept;

private:
    const void* owner_;
    callback_mark* outer_;
};

}  // namespace holdfast::engines::redis
