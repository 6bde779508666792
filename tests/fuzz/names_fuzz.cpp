// Names come from users and command lines: whatever they hold, checking ends with a verdict, and a
// quoted name has no control character left that could fool a terminal or a log.
#include <core/names.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view name{reinterpret_cast<const char*>(data), size};
    const auto verdict = holdfast::core::check_name(name);
    if (verdict && verdict.code != holdfast::errc::invalid_name) {
        std::abort();
    }
    const std::string quoted = holdfast::core::quote_name(name);
    for (const char character : quoted) {
        const auto byte = static_cast<unsigned char>(character);
        if (byte < 0x20 || byte == 0x7f) {
            std::abort();
        }
    }
    return 0;
}
