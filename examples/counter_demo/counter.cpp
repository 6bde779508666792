#include "counter.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace demo {

counter::counter(const std::filesystem::path& file)
    : file_{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
    if (file_ < 0) {
        throw std::system_error{errno, std::generic_category(), file.string()};
    }
}

counter::~counter() {
    ::close(file_);
}

std::int64_t counter::read() const {
    std::int64_t value = 0;
    if (::pread(file_, &value, sizeof value, 0) < 0) {
        throw std::system_error{errno, std::generic_category(), "cannot read the counter"};
    }
    return value;
}

void counter::write(std::int64_t value) const {
    if (::pwrite(file_, &value, sizeof value, 0) != sizeof value) {
        throw std::system_error{errno, std::generic_category(), "cannot write the counter"};
    }
}

}  // namespace demo
