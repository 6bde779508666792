// The contract suite is there for engines that live elsewhere.
#include <holdfast/testing/engine_contract.hpp>
#include <string>

namespace {

struct some_store {
    [[nodiscard]] static std::string address() { return "memory:"; }
    static constexpr std::chrono::milliseconds short_ttl{100};
    static constexpr std::chrono::milliseconds wake_bound{1000};
};

static_assert(holdfast::testing::contract_store<some_store>);

}  // namespace
