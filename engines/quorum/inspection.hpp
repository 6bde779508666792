#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <quorum/members.hpp>

namespace holdfast::engines::quorums {

/// What the members say about one name. A member that did not answer has a failure in place of an
/// answer.
struct inspection {
    std::string name;
    std::vector<std::optional<lock_info>> answers;
    std::vector<failure> failures;

    [[nodiscard]] bool enough() const;
};

/// Looks at one name on all members. Every member is waited for, suspects only if too few others have
/// answered.
void inspect_members(member_set& members, std::string name, const call& limits,
                     std::function<void(inspection&)> done);

/// One picture of a name from what the members say.
void inspect_all(member_set& members, std::string name, const call& limits,
                 completion<inspect_reply> done);

}  // namespace holdfast::engines::quorums
