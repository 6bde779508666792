#pragma once

#include <string>
#include <string_view>

namespace holdfast::engines::redis {

/// The value of `field` in the reply to INFO: lines of `field:value`. Empty when it is not there.
[[nodiscard]] inline std::string info_field(const std::string& info, std::string_view field) {
    const std::string start = "\n" + std::string{field} + ":";
    const auto found = info.find(start);
    if (found == std::string::npos) {
        return {};
    }
    const auto begin = found + start.size();
    return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

}  // namespace holdfast::engines::redis
