#include "store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <holdfast/engine.hpp>
#include <sstream>
#include <string_view>

#include "exit_code.hpp"
#include "secrets.hpp"

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
    options.request_timeout = store.timeout.value_or(options.request_timeout);
    options.label = look.label;
    options.require = store.require;
    options.events = look.events;
    options.outage_patience = look.outage_patience;
    auto identity = engines::make_identity(look.label);
    identity.only_looks = look.only_looks;
    identity.opening_timeout = options.request_timeout;
    if (!look.program.empty()) {
        identity.card.program = look.program;
    }
    try {
        return std::make_unique<client>(engines::open(store.address, identity), identity,
                                        std::move(options));
    } catch (const std::system_error& error) {
        const bool reads_it_itself = store.address.find("password_file=") != std::string::npos;
        if (error.code() == errc::unauthorised && std::getenv("HOLDFAST_OWNER") != nullptr &&
            !reads_it_itself) {
            throw stop_program{
                exit_code::unauthorised,
                fmt::format("{}; this runs inside holdfast run, which keeps the password "
                            "unless it is called with --pass-store",
                            error.what())};
        }
        throw;
    }
}

std::string address_for_child(const store_arguments& store, const client& opened,
                              store_passing passing) {
    // An embedded store reports its address as an absolute path. Other stores report theirs without
    // options; but their addresses have no relative path, and can be passed on as they are.
    const bool embedded = store.address.rfind("local:", 0) == 0 || is_embedded_quorum(store.address);
    if (embedded) {
        return opened.store();
    }
    return passing == store_passing::with_password ? store.address : without_passwords(store.address);
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
