#include "terminal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::cli {

terminal::terminal() noexcept : tty_{::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)} {
    if (tty_ && tcgetpgrp(tty_.get()) < 0) {
        tty_.close();
    }
}

bool terminal::is_ours() const noexcept {
    return belongs_to(getpgrp());
}

bool terminal::belongs_to(pid_t group) const noexcept {
    return present() && tcgetpgrp(tty_.get()) == group;
}

bool terminal::should_be_lent() const noexcept {
    struct stat output {};
    const bool piped = fstat(STDOUT_FILENO, &output) == 0 && S_ISFIFO(output.st_mode);
    return is_ours() && isatty(STDIN_FILENO) == 1 && !piped;
}

void terminal::lend_to(pid_t group) const noexcept {
    tcsetpgrp(tty_.get(), group);
}

void terminal::take_back_from(pid_t group) const noexcept {
    if (belongs_to(group)) {
        tcsetpgrp(tty_.get(), getpgrp());
    }
}

}  // namespace holdfast::cli
