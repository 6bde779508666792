#include <chrono>
#include <string>

#include <contract/deployments.hpp>
#include <holdfast/testing/engine_contract.hpp>

/// One program, run once for each store: the suite takes long to compile, and a cluster that takes
/// seconds to start serves all tests of its run.
namespace {

class store_under_test {
public:
    [[nodiscard]] const std::string& address() const noexcept { return address_; }
    static constexpr std::chrono::milliseconds short_ttl{250};
    static constexpr std::chrono::milliseconds wake_bound{3000};

private:
    std::string address_{holdfast::testing::deployed().address()};
};

}  // namespace

HOLDFAST_INSTANTIATE_ENGINE_CONTRACT(engine, ::store_under_test);
