#include <runtime/engine_registry.hpp>

#include <core/names.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>

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

[[nodiscard]] engine_factory find_registered(std::string_view scheme) {
    auto& all = registered();
    const std::lock_guard lock{all.guard};
    const auto found = all.factories.find(scheme);
    return found == all.factories.end() ? engine_factory{} : found->second;
}

[[nodiscard]] const builtin_engine* find_builtin(std::string_view scheme) {
    const auto& all = builtin_engines();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const builtin_engine& one) { return one.scheme == scheme; });
    return found == all.end() ? nullptr : &*found;
}

[[nodiscard]] std::string known_schemes() {
    std::string known;
    for (const auto& one : builtin_engines()) {
        known += (known.empty() ? "" : ", ") + std::string{one.scheme};
    }
    return known;
}

/// Whether this part of an address may be repeated to people. A password with a colon or white space in
/// it, in an address that is not understood, may stand where a scheme should.
[[nodiscard]] bool may_show_scheme(std::string_view scheme, std::string_view rest) {
    const bool plain = std::all_of(scheme.begin(), scheme.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
               c == '-' || c == '.' || c == '_';
    });
    return plain && (rest.starts_with("//") || rest.find('@') == std::string_view::npos);
}

/// Whether an address that is not understood ends like `host:6379`, with or without a database.
[[nodiscard]] bool looks_like_port(std::string_view rest) {
    const auto last = rest.substr(rest.find_last_of(':') + 1);
    const auto digits = std::min(last.find_first_not_of("0123456789"), last.size());
    return digits > 0 && (digits == last.size() || last[digits] == '/');
}

/// Of an engine that says nothing about its addresses.
[[nodiscard]] std::string shown_of(std::string_view address) {
    const auto colon = std::min(address.find(':'), address.size());
    const auto scheme = address.substr(0, colon);
    if (colon == address.size() || !may_show_scheme(scheme, address.substr(colon + 1))) {
        return "…";
    }
    const bool whole = find_registered(scheme) && address.find_first_of("@?") == std::string_view::npos;
    return whole ? std::string{address} : std::string{scheme} + ":…";
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
        failure{errc::bad_configuration,
                "write it as scheme:rest, such as redis://host:port; known are " + known_schemes()}
            .raise("store address without a scheme");
    }
    const auto rest = address.substr(colon + 1);
    if (const auto factory = find_registered(scheme)) {
        return factory(rest, identity);
    }
    if (const auto* const builtin = find_builtin(scheme)) {
        return builtin->open(rest, identity);
    }
    const bool only_port = rest.find_first_not_of("0123456789") == std::string_view::npos;
    const auto host = only_port && may_show_scheme(scheme, rest) ? std::string{address} : "host:port";
    const auto hint = looks_like_port(rest) ? "for Redis write redis://" + host + "; " : "";
    failure{errc::bad_configuration, hint + ("this build knows " + known_schemes())}.raise(
        may_show_scheme(scheme, rest) ? "no engine for stores of kind " + core::quote_name(scheme)
                                      : "no engine for this store");
}

address_summary summarise_address(std::string_view address) {
    const auto colon = std::min(address.find(':'), address.size());
    const auto scheme = address.substr(0, colon);
    const auto* const builtin = find_registered(scheme) ? nullptr : find_builtin(scheme);
    if (builtin == nullptr || colon == address.size()) {
        return {std::string{address}, shown_of(address)};
    }
    try {
        return builtin->summarise(address.substr(colon + 1));
    } catch (const std::system_error&) {
        return {std::string{address}, std::string{scheme} + ":…"};
    }
}

}  // namespace holdfast::engines
