#pragma once

#include <cstddef>
#include <memory>

#include <ucontext.h>

namespace holdfast::model {

/// A stack and where its code has got to. The sanitizers are told when it is left for another.
struct fiber {
    static constexpr std::size_t own_stack = 256 * 1024;

    /// The stack of the thread it is used on.
    fiber() = default;
    explicit fiber(std::size_t bytes)
        : stack{std::make_unique<char[]>(bytes)}, bottom{stack.get()}, size{bytes} {}

    std::unique_ptr<char[]> stack;
    const void* bottom{};
    std::size_t size{};
    ::ucontext_t context{};
    void* sanitizer{};
};

/// Makes it begin with `enter`, which must call `arrive` first and never return.
void prepare(fiber& made, void (*enter)());
void arrive(fiber& main);
void switch_fiber(fiber& from, fiber& to);

}  // namespace holdfast::model
