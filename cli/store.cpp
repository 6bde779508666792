#include "store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <sstream>
#include <string_view>

namespace holdfast::cli {

namespace {

constexpr std::string_view quorum_scheme = "quorum:";

/// Whether all members are stores of this host.
[[nodiscard]] bool is_embedded_quorum(const std::string& address) {
    if (address.rfind(quorum_scheme, 0) != 0) {
        return false;
    }
    std::istringstream words{address.substr(quorum_scheme.size())};
    bool embedded = true;
    for (std::string word; words >> word;) {
        embedded = embedded && (word.front() == '?' || word.rfind("local:", 0) == 0);
    }
    return embedded;
}

}  // namespace

std::unique_ptr<client> open_store(const store_arguments& store, const appearance& look) {
    client_options options;
    options.label = look.label;
    options.require = store.require;
    options.events = look.events;
    auto identity = engines::make_identity(look.label);
    if (!look.program.empty()) {
        identity.card.program = look.program;
    }
    return std::make_unique<client>(engines::open(store.address, identity), identity,
                                    std::move(options));
}

std::string address_for_child(const store_arguments& store, const client& opened) {
    // An embedded store's own word for its address is absolute; other addresses lose their password
    // in it, and have no directory that could be relative.
    const bool embedded = store.address.rfind("local:", 0) == 0 || is_embedded_quorum(store.address);
    return embedded ? opened.store() : store.address;
}

void mention_limits(const store_arguments& store, const client& opened, const messages& out) {
    if (store.password_exposed) {
        out.say(
            "the password in --store can be read by everybody on this host; put the address into "
            "HOLDFAST_STORE instead");
    }
    const auto& promises = opened.promises();
    if (out.verbose() && opened.store().rfind(quorum_scheme, 0) == 0) {
        out.say(fmt::format("{} excludes {}", opened.store(), promises.reach_text));
        return;
    }
    if (promises.reach == scope::fleet || (isatty(STDERR_FILENO) == 0 && !out.verbose())) {
        return;
    }
    out.say(fmt::format("store {} excludes {}; use --store redis://... or --require fleet to be strict",
                        opened.store(), promises.reach_text));
}

}  // namespace holdfast::cli
