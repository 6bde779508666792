#pragma once

#include <string_view>

namespace lab {

/// The first paragraphs of a scenario's page in docs/learn, which is where they are written. Empty when
/// there is no such page.
struct explanation {
    std::string_view name;
    std::string_view english;
    std::string_view chinese;
};

[[nodiscard]] explanation explanation_of(std::string_view name) noexcept;

}  // namespace lab
