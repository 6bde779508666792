#include <atomic>
#include <chrono>
#include <string>

#include <holdfast/testing/engine_contract.hpp>

namespace {

/// Three stores of its own for every test. Members get more time than the default: the suite's ttls
/// are short, and its machine may be busy.
struct quorum_of_memory {
    std::string address() const {
        std::string text = "quorum:?member_timeout=5s";
        for (const auto* member : {"a", "b", "c"}) {
            text += " memory:quorum-" + std::to_string(number_) + member;
        }
        return text;
    }
    static constexpr std::chrono::milliseconds short_ttl{120};
    static constexpr std::chrono::milliseconds wake_bound{2000};

private:
    static inline std::atomic<int> last_number{0};
    int number_{++last_number};
};

}  // namespace

HOLDFAST_INSTANTIATE_ENGINE_CONTRACT(quorum, ::quorum_of_memory);
