#include <holdfast/engine.hpp>

#include <unistd.h>

#include <array>
#include <climits>
#include <filesystem>
#include <utility>

namespace holdfast::engines {
inline namespace v0 {

namespace {

[[nodiscard]] std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

[[nodiscard]] std::string program_name() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored).filename().string();
}

}  // namespace

client_identity make_identity(std::string label) {
    return {owner_id::random_client(), {host_name(), getpid(), program_name(), std::move(label)}};
}

}  // namespace v0
}  // namespace holdfast::engines
