#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <api/request.hpp>
#include <runtime/joint_hold.hpp>

/// How a `multi_lock` gets its locks.
namespace holdfast::detail {

struct joint_target {
    std::shared_ptr<session> where;
    std::string name;
};

/// All of `targets`, which are sorted, or null when one of them was busy or `stop` was triggered.
/// Throws on everything else. Nothing is held unless all are.
[[nodiscard]] std::shared_ptr<joint_hold> take_all(const std::vector<joint_target>& targets,
                                                   const lease_options& options,
                                                   const patience& how_long,
                                                   const std::stop_token& stop = {});

}  // namespace holdfast::detail
