#include <holdfast/testing/engine_contract.hpp>

#include "tree_store.hpp"

namespace {

struct tree_under_test {
    tree_under_test() { register_tree(); }
    static std::string address() { return "tree:"; }
    static constexpr std::chrono::milliseconds short_ttl{250};
    static constexpr std::chrono::milliseconds wake_bound{3000};
};

}  // namespace

HOLDFAST_INSTANTIATE_ENGINE_CONTRACT(tree, ::tree_under_test);
