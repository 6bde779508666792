// owner_id::parse reads what a store answers: it accepts exactly what text() writes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <holdfast/owner.hpp>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    if (const auto owner = holdfast::owner_id::parse(text)) {
        const auto again = holdfast::owner_id::parse(owner->text());
        if (!again || *again != *owner || again->text() != owner->text()) {
            std::abort();
        }
    }
    return 0;
}
