#include <holdfast/observer.hpp>

namespace holdfast {
inline namespace v0 {

std::string_view to_string(event_kind kind) noexcept {
    switch (kind) {
        case event_kind::acquired:
            return "acquired";
        case event_kind::contended:
            return "contended";
        case event_kind::not_acquired:
            return "not_acquired";
        case event_kind::handed_over:
            return "handed_over";
        case event_kind::released:
            return "released";
        case event_kind::release_unconfirmed:
            return "release_unconfirmed";
        case event_kind::renewed:
            return "renewed";
        case event_kind::renewal_failed:
            return "renewal_failed";
        case event_kind::jeopardy:
            return "jeopardy";
        case event_kind::lost:
            return "lost";
        case event_kind::degraded:
            return "degraded";
    }
    return "unknown";
}

}  // namespace v0
}  // namespace holdfast
