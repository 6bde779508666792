// decode reads what a store has under a name: what it accepts can be written, and is then accepted
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <records/codec.hpp>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace holdfast::engines::records;
    std::string bytes{reinterpret_cast<const char*>(data), size};
    // The checksum would refuse nearly everything before it is looked at.
    std::uint64_t sum = 0xcbf29ce484222325U;
    bytes = "hfr1" + bytes;
    for (const char byte : bytes) {
        sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    for (unsigned shift = 0; shift < 64; shift += 8) {
        bytes += static_cast<char>(sum >> shift);
    }
    if (const auto record = decode(bytes)) {
        const auto again = decode(encode(*record));
        if (!again || again->holds != record->holds || again->last_token != record->last_token) {
            std::abort();
        }
    }
    return 0;
}
