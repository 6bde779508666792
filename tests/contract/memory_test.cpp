#include <atomic>
#include <chrono>
#include <string>

#include <holdfast/testing/engine_contract.hpp>

namespace {

/// A store of its own for every test.
struct memory_store {
    std::string address() const { return "memory:contract-" + std::to_string(number_); }
    static constexpr std::chrono::milliseconds short_ttl{120};
    static constexpr std::chrono::milliseconds wake_bound{2000};

private:
    static inline std::atomic<int> last_number{0};
    int number_{++last_number};
};

}  // namespace

HOLDFAST_INSTANTIATE_ENGINE_CONTRACT(memory, ::memory_store);
