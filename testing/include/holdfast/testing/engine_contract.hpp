#pragma once

#include <holdfast/testing/contract/calls.hpp>
#include <holdfast/testing/contract/client.hpp>
#include <holdfast/testing/contract/fixture.hpp>
#include <holdfast/testing/contract/latches.hpp>
#include <holdfast/testing/contract/leases.hpp>
#include <holdfast/testing/contract/lock_types.hpp>
#include <holdfast/testing/contract/mutual_exclusion.hpp>
#include <holdfast/testing/contract/names.hpp>
#include <holdfast/testing/contract/neighbours.hpp>
#include <holdfast/testing/contract/operators.hpp>
#include <holdfast/testing/contract/permits.hpp>
#include <holdfast/testing/contract/shared_locks.hpp>
#include <holdfast/testing/contract/together.hpp>
#include <holdfast/testing/contract/tokens.hpp>
#include <holdfast/testing/contract/waiting.hpp>

/// The tests that every engine passes, inside this repository or outside of it.
///
///     struct my_store {
///         my_store() { holdfast::engines::register_engine("my", open_my_engine); … start a server … }
///         std::string address() { return "my://127.0.0.1:" + std::to_string(port_); }
///         static constexpr std::chrono::milliseconds short_ttl{200};
///         static constexpr std::chrono::milliseconds wake_bound{2000};
///     };
///     HOLDFAST_INSTANTIATE_ENGINE_CONTRACT(mine, my_store);
///
/// See `contract_store` for what a store must offer, and `engine_contract` for how the tests treat what
/// an engine does not promise.
#define HOLDFAST_INSTANTIATE_ENGINE_CONTRACT(prefix, store)            \
    namespace holdfast::testing {                                      \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, exclusion_contract, store); \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, lease_contract, store);     \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, token_contract, store);     \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, together_contract, store);  \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, waiting_contract, store);   \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, shared_contract, store);    \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, permit_contract, store);    \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, latch_contract, store);     \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, name_contract, store);      \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, neighbour_contract, store); \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, operator_contract, store);  \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, call_contract, store);      \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, client_contract, store);    \
    INSTANTIATE_TYPED_TEST_SUITE_P(prefix, lock_type_contract, store); \
    }                                                                  \
    static_assert(true, "a semicolon follows")
