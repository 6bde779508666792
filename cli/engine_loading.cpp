#include "engine_loading.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <holdfast/error.hpp>
#include <holdfast/version.hpp>
#include <string>

namespace holdfast::cli {

void load_engine(std::string_view name) {
    const auto library = "libholdfast_" + std::string{name} + ".so." HOLDFAST_SOVERSION;
    ::Dl_info ours{};
    if (::dladdr(reinterpret_cast<const void*>(&version), &ours) == 0) {
        return;
    }
    const auto path = std::filesystem::path{ours.dli_fname}.replace_filename(library);
    if (std::error_code unreadable; !std::filesystem::exists(path, unreadable)) {
        failure{errc::bad_configuration, "install it; " + path.string() + " is not there"}.raise(
            "this store needs the package libholdfast-" + std::string{name});
    }
    // Stays loaded: its engines are in use until the end.
    if (::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
        const char* const reason = ::dlerror();
        failure{errc::bad_configuration, reason == nullptr ? "no reason is given" : reason}.raise(
            path.string() + " cannot be loaded");
    }
}

}  // namespace holdfast::cli
