#include <holdfast/version.hpp>

#define HOLDFAST_TEXT_OF(x) #x
#define HOLDFAST_TEXT(x) HOLDFAST_TEXT_OF(x)

namespace holdfast {
inline namespace v0 {

const char* version() noexcept {
    return HOLDFAST_TEXT(HOLDFAST_VERSION_MAJOR) "." HOLDFAST_TEXT(
        HOLDFAST_VERSION_MINOR) "." HOLDFAST_TEXT(HOLDFAST_VERSION_PATCH);
}

}  // namespace v0
}  // namespace holdfast
