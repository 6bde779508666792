#include <algorithm>
#include <array>
#include <cerrno>
#include <common/net/descriptor.hpp>
#include <redis/net/settings.hpp>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::engines::redis {

password_file_content read_password_file(const std::string& path) {
    constexpr std::size_t longest = 65'536;
    const net::descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    password_file_content read;
    std::array<char, 4096> some{};
    auto line_ends = std::string::npos;
    while (line_ends == std::string::npos && read.password.size() <= longest) {
        const auto got = file ? ::read(file.get(), some.data(), some.size()) : -1;
        if (got < 0 && file && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return {.password = {}, .problem = std::generic_category().message(errno)};
        }
        read.password.append(some.data(), static_cast<std::size_t>(got));
        line_ends = got == 0 ? read.password.size() : read.password.find_first_of("\r\n");
    }
    if (line_ends == std::string::npos) {
        return {.password = {}, .problem = "it has no end of line"};
    }
    read.password.resize(std::min(line_ends, read.password.find_first_of("\r\n")));
    if (read.password.empty()) {
        read.problem = "there is no password in its first line";
    }
    return read;
}

credentials up_to_date(credentials login) {
    if (!login.password_file.empty()) {
        if (auto now = read_password_file(login.password_file); now.problem.empty()) {
            login.password = std::move(now.password);
        }
    }
    return login;
}

}  // namespace holdfast::engines::redis
