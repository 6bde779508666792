#include "fenced_register.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace demo {

namespace {

class file_lock {
public:
    explicit file_lock(const std::filesystem::path& file)
        : file_{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
        if (file_ < 0 || ::flock(file_, LOCK_EX) != 0) {
            throw std::system_error{errno, std::generic_category(), file.string()};
        }
    }
    file_lock(const file_lock&) = delete;
    file_lock& operator=(const file_lock&) = delete;
    ~file_lock() { ::close(file_); }

private:
    int file_;
};

}  // namespace

bool fenced_register::write(holdfast::fencing_token token, const std::string& value) const {
    const file_lock lock{file_.string() + ".lock"};
    std::uint64_t largest = 0;
    std::ifstream{file_} >> largest;
    if (token.value < largest) {
        return false;
    }
    std::ofstream{file_} << token.value << ' ' << value << '\n';
    return true;
}

std::string fenced_register::read() const {
    std::ifstream in{file_};
    std::uint64_t token = 0;
    std::string value;
    in >> token >> std::ws;
    std::getline(in, value);
    return value;
}

}  // namespace demo
