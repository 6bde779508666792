#include "fiber.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace holdfast::model {

void prepare(fiber& made, void (*enter)()) {
    ::getcontext(&made.context);
    made.context.uc_stack.ss_sp = made.stack.get();
    made.context.uc_stack.ss_size = made.size;
    made.context.uc_link = nullptr;
    ::makecontext(&made.context, enter, 0);
#if defined(__SANITIZE_THREAD__)
    if (made.sanitizer == nullptr) {
        made.sanitizer = __tsan_create_fiber(0);
    }
#endif
}

void arrive([[maybe_unused]] fiber& main) {
#if defined(__SANITIZE_ADDRESS__)
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
    if (main.bottom == nullptr) {
        main.bottom = bottom;
        main.size = size;
    }
#endif
}

void switch_fiber(fiber& from, fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&from.sanitizer, to.bottom, to.size);
#elif defined(__SANITIZE_THREAD__)
    if (from.sanitizer == nullptr) {
        from.sanitizer = __tsan_get_current_fiber();
    }
    __tsan_switch_to_fiber(to.sanitizer, 0);
#endif
    ::swapcontext(&from.context, &to.context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(from.sanitizer, nullptr, nullptr);
#endif
}

}  // namespace holdfast::model
