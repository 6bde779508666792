#pragma once

#include <csignal>
#include <utility>

#include <threading/primitives.hpp>

#include <pthread.h>

namespace holdfast::engines {

/// A thread that no signal of the application's is ever delivered to.
template <class Work>
[[nodiscard]] threading::jthread quiet_thread(Work work) {
    ::sigset_t all;
    ::sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    struct restore {
        ::sigset_t* mask;
        ~restore() { ::pthread_sigmask(SIG_SETMASK, mask, nullptr); }
    } const later{&before};
    return threading::jthread{std::move(work)};
}

}  // namespace holdfast::engines
