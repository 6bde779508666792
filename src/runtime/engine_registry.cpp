#include <runtime/engine_registry.hpp>

#include <core/names.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>

namespace holdfast::engines {
inline namespace v0 {

namespace {

struct registry {
    std::mutex guard;
    std::map<std::string, engine_factory, std::less<>> factories;
};

registry& registered() {
    static registry all;
    return all;
}

/// Constant-initialised: engines add themselves before any constructor of the library has run.
constinit std::atomic<const engine_module*> modules{};
constinit std::atomic<engine_loader> loader{};

[[nodiscard]] engine_factory find_registered(std::string_view scheme) {
    auto& all = registered();
    const std::lock_guard lock{all.guard};
    const auto found = all.factories.find(scheme);
    return found == all.factories.end() ? engine_factory{} : found->second;
}

[[nodiscard]] const engine_entry* find_in(std::span<const engine_entry> entries,
                                          std::string_view scheme) noexcept {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const engine_entry& one) { return one.scheme == scheme; });
    return found == entries.end() ? nullptr : &*found;
}

[[nodiscard]] const engine_entry* find_linked(std::string_view scheme) noexcept {
    if (const auto* const found = find_in(builtin_engines(), scheme)) {
        return found;
    }
    for (const auto* one = modules.load(); one != nullptr; one = one->next) {
        if (const auto* const found = find_in(one->entries, scheme)) {
            return found;
        }
    }
    return nullptr;
}

[[nodiscard]] const known_engine* find_known(std::string_view scheme) noexcept {
    const auto all = known_engines();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const known_engine& one) { return one.scheme == scheme; });
    return found == all.end() ? nullptr : &*found;
}

/// Throws what the loader throws.
[[nodiscard]] const engine_entry* find_or_load(std::string_view scheme) {
    const auto* const linked = find_linked(scheme);
    const auto* const known = linked == nullptr ? find_known(scheme) : nullptr;
    const auto load = loader.load();
    if (known == nullptr || load == nullptr || !known->missing.empty()) {
        return linked;
    }
    load(known->name);
    return find_linked(scheme);
}

[[nodiscard]] std::string linked_schemes() {
    std::string all;
    const auto add = [&all](std::span<const engine_entry> entries) {
        for (const auto& one : entries) {
            all += (all.empty() ? "" : ", ") + std::string{one.scheme};
        }
    };
    add(builtin_engines());
    for (const auto* one = modules.load(); one != nullptr; one = one->next) {
        add(one->entries);
    }
    return all;
}

/// For a scheme of an engine of ours that is not there.
[[nodiscard]] std::string advice_on(const known_engine& known) {
    const std::string name{known.name};
    return known.missing.empty() ? "link holdfast::" + name + " (pkg-config: holdfast-" + name + ")"
                                 : "this holdfast was built without its engine; building it needs " +
                                       std::string{known.missing};
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

void add_engine_module(engine_module& added) noexcept {
    added.next = modules.load();
    while (!modules.compare_exchange_weak(added.next, &added)) {
    }
}

void load_engines_with(engine_loader load) noexcept {
    loader = load;
}

std::unique_ptr<engine> open(std::string_view address, const client_identity& identity) {
    const auto colon = address.find(':');
    // Only the scheme is repeated in errors: what follows may hold a password.
    const auto scheme = address.substr(0, colon);
    if (colon == std::string_view::npos || scheme.empty()) {
        failure{errc::bad_configuration,
                "write it as scheme:rest, such as redis://host:port; known are " + linked_schemes()}
            .raise("store address without a scheme");
    }
    const auto rest = address.substr(colon + 1);
    if (const auto factory = find_registered(scheme)) {
        return factory(rest, identity);
    }
    if (const auto* const entry = find_or_load(scheme)) {
        return entry->open(rest, identity);
    }
    if (const auto* const known = find_known(scheme)) {
        failure{errc::bad_configuration, advice_on(*known)}.raise("no engine for stores of kind " +
                                                                  core::quote_name(scheme));
    }
    const bool only_port = rest.find_first_not_of("0123456789") == std::string_view::npos;
    const auto host = only_port && may_show_scheme(scheme, rest) ? std::string{address} : "host:port";
    const auto hint = looks_like_port(rest) ? "for Redis write redis://" + host + "; " : "";
    failure{errc::bad_configuration, hint + ("this build knows " + linked_schemes())}.raise(
        may_show_scheme(scheme, rest) ? "no engine for stores of kind " + core::quote_name(scheme)
                                      : "no engine for this store");
}

address_summary summarise_address(std::string_view address) {
    const auto colon = std::min(address.find(':'), address.size());
    const auto scheme = address.substr(0, colon);
    try {
        const auto* const entry = find_registered(scheme) ? nullptr : find_or_load(scheme);
        if (entry == nullptr || colon == address.size()) {
            return {std::string{address}, shown_of(address)};
        }
        return entry->summarise(address.substr(colon + 1));
    } catch (const std::system_error&) {
        return {std::string{address}, std::string{scheme} + ":…"};
    }
}

}  // namespace v0
}  // namespace holdfast::engines
