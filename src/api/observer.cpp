#include <holdfast/observer.hpp>

namespace holdfast {

std::string_view to_string(event_kind kind) noexcept {
    switch (kind) {
        case event_kind::acquired:
            return "acquired";
        case event_kind::contended:
            return "contended";
        case event_kind::not_acquired:
            return "not acquired";
        case event_kind::handed_over:
            return "handed over";
        case event_kind::released:
            return "released";
        case event_kind::release_unconfirmed:
            return "release unconfirmed";
        case event_kind::renewed:
            return "renewed";
        case event_kind::renewal_failed:
            return "renewal failed";
        case event_kind::jeopardy:
            return "jeopardy";
        case event_kind::lost:
            return "lost";
    }
    return "unknown";
}

}  // namespace holdfast
