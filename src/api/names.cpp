#include <holdfast/guarantees.hpp>
#include <holdfast/info.hpp>
#include <holdfast/options.hpp>
#include <holdfast/segmented_stock.hpp>

namespace holdfast {

std::string_view v0::to_string(claim_mode mode) noexcept {
    switch (mode) {
        case claim_mode::exclusive:
            return "exclusive";
        case claim_mode::shared:
            return "shared";
        case claim_mode::permit:
            return "permit";
    }
    return "unknown";
}

std::string_view v0::to_string(liveness process) noexcept {
    switch (process) {
        case liveness::unknown:
            return "unknown";
        case liveness::alive:
            return "alive";
        case liveness::dead:
            return "dead";
    }
    return "unknown";
}

std::string_view v0::to_string(finding::severity level) noexcept {
    switch (level) {
        case finding::severity::fact:
            return "fact";
        case finding::severity::advice:
            return "advice";
        case finding::severity::warning:
            return "warning";
        case finding::severity::unchecked:
            return "unchecked";
    }
    return "unknown";
}

std::string_view v0::to_string(scope reach) noexcept {
    switch (reach) {
        case scope::process:
            return "process";
        case scope::host:
            return "host";
        case scope::fleet:
            return "fleet";
    }
    return "unknown";
}

std::string_view v0::to_string(taking::outcome what) noexcept {
    switch (what) {
        case taking::outcome::taken:
            return "taken";
        case taking::outcome::not_enough:
            return "not enough";
        case taking::outcome::gave_up:
            return "gave up";
    }
    return "unknown";
}

std::string_view engines::v0::to_string(fencing tokens) noexcept {
    switch (tokens) {
        case fencing::none:
            return "none";
        case fencing::best_effort:
            return "best_effort";
        case fencing::strict:
            return "strict";
    }
    return "unknown";
}

}  // namespace holdfast
