#include <runtime/engine_registry.hpp>

#include <core/names.hpp>

#include <map>
#include <mutex>
#include <optional>

namespace holdfast::engines {

namespace {

struct registry {
    std::mutex guard;
    std::map<std::string, engine_factory, std::less<>> factories;
};

registry& registered() {
    static registry all;
    return all;
}

[[nodiscard]] engine_factory find_factory(std::string_view scheme) {
    {
        auto& all = registered();
        const std::lock_guard lock{all.guard};
        if (const auto found = all.factories.find(scheme); found != all.factories.end()) {
            return found->second;
        }
    }
    for (const auto& [name, factory] : builtin_engines()) {
        if (name == scheme) {
            return factory;
        }
    }
    return {};
}

[[nodiscard]] std::string known_schemes() {
    std::string known;
    for (const auto& [name, factory] : builtin_engines()) {
        known += (known.empty() ? "" : ", ") + std::string{name} + ":";
    }
    return known;
}

}  // namespace

void register_engine(std::string scheme, engine_factory factory) {
    if (!factory) {
        failure{errc::invalid_argument, "there is no factory"}.raise("engines of kind " +
                                                                     core::quote_name(scheme));
    }
    auto& all = registered();
    const std::lock_guard lock{all.guard};
    all.factories.insert_or_assign(std::move(scheme), std::move(factory));
}

std::unique_ptr<engine> open(std::string_view address, const client_identity& identity) {
    const auto colon = address.find(':');
    // Only the scheme is repeated in errors: what follows may hold a password.
    const auto scheme = address.substr(0, colon);
    if (colon == std::string_view::npos || scheme.empty()) {
        failure{errc::bad_configuration, "write it as scheme:rest; known are " + known_schemes()}.raise(
            "store address without a scheme");
    }
    const auto factory = find_factory(scheme);
    if (!factory) {
        failure{errc::bad_configuration, "this build knows " + known_schemes()}.raise(
            "no engine for stores of kind " + core::quote_name(scheme));
    }
    return factory(address.substr(colon + 1), identity);
}

}  // namespace holdfast::engines
