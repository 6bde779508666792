#pragma once

#include <string>

namespace holdfast::testing {

/// A store to run the contract against, with the servers that it needs.
class deployment {
public:
    virtual ~deployment() = default;
    /// Where one test finds a store. The same for all where starting one takes long: tests use names of
    /// their own.
    [[nodiscard]] virtual std::string address() = 0;
};

/// What HOLDFAST_TEST_STORE names; made when it is first asked for, and kept until the program ends.
[[nodiscard]] deployment& deployed();

}  // namespace holdfast::testing
