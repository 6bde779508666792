#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include <holdfast/fair_mutex.hpp>
#include <holdfast/holdfast.hpp>

/// interop_holder STORE KIND NAME TTL_MS
///
/// Takes a lock, says so with the holder's id, and holds it until its standard input ends, or until it
/// is killed, which is what it is for. KIND is one of plain, fair, read, write, permit (of one).
namespace {

namespace hf = holdfast;

[[nodiscard]] hf::lease take(hf::client& store, const std::string& kind, const std::string& name,
                             const hf::lease_options& terms) {
    if (kind == "plain") {
        return hf::mutex{store, name, terms}.acquire();
    }
    if (kind == "fair") {
        return hf::fair_mutex{store, name, terms}.acquire();
    }
    if (kind == "read") {
        return hf::shared_mutex{store, name, terms}.acquire_shared();
    }
    if (kind == "write") {
        return hf::shared_mutex{store, name, terms}.acquire();
    }
    return hf::semaphore{store, name, 1, terms}.acquire();
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) {
        std::cerr << "usage: interop_holder STORE KIND NAME TTL_MS\n";
        return EXIT_FAILURE;
    }
    try {
        hf::client store{arguments[1]};
        const std::chrono::milliseconds ttl{std::stoll(arguments[4])};
        const auto held = take(store, arguments[2], arguments[3], {.ttl = ttl});
        std::cout << held.owner().text() << std::endl;
        for (std::string line; std::getline(std::cin, line);) {
        }
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
