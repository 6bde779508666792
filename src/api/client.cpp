#include <holdfast/client.hpp>

#include <core/names.hpp>
#include <holdfast/detail/deadline.hpp>
#include <holdfast/quorum.hpp>
#include <runtime/session.hpp>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast {

namespace {

using namespace std::chrono_literals;

/// Empty when it is not set. Set but empty is refused: a deployment that forgot a value must not end up
/// with a store that nobody shares.
[[nodiscard]] std::string environment(const char* variable) {
    const char* const value = std::getenv(variable);
    if (value != nullptr && *value == '\0') {
        failure{errc::bad_configuration, "give it a value, or unset it"}.raise(std::string{variable} +
                                                                               " is set, but empty");
    }
    return value == nullptr ? std::string{} : std::string{value};
}

[[nodiscard]] std::string default_store() {
    const auto chosen = environment("HOLDFAST_STORE");
    return chosen.empty() ? "local:" : chosen;
}

/// What `HOLDFAST_REQUIRE` asks for: an operator may demand more than a program does, never less.
[[nodiscard]] scope required_by_environment() {
    const auto wanted = environment("HOLDFAST_REQUIRE");
    if (wanted.empty()) {
        return scope::process;
    }
    for (const auto reach : {scope::process, scope::host, scope::fleet}) {
        if (to_string(reach) == wanted) {
            return reach;
        }
    }
    // An address, which was meant for HOLDFAST_STORE, may hold a password.
    const bool may_be_address = wanted.find_first_of(":@") != std::string::npos;
    failure{errc::bad_configuration, "write process, host or fleet"}.raise(
        "HOLDFAST_REQUIRE is " + (may_be_address ? "\"...\"" : core::quote_name(wanted)));
}

/// Where no thread or timer can be had, the system says so in its own codes.
template <class Start>
auto in_our_words(const Start& start) {
    try {
        return start();
    } catch (const std::system_error& error) {
        if (error.code().category() == error_category()) {
            throw;
        }
        failure{errc::store_unavailable,
                std::string{"a thread or a descriptor could not be had: "} + error.what()}
            .raise("client");
    }
}

/// Before a store is opened with them.
void check(const client_options& options) {
    const auto refuse = [](const std::string& option, std::chrono::milliseconds given) {
        failure{errc::invalid_argument, "it cannot be " + std::to_string(given.count()) + " ms"}.raise(
            "client_options::" + option);
    };
    if (options.request_timeout <= 0ms) {
        refuse("request_timeout", options.request_timeout);
    }
    if (options.outage_patience < 0ms) {
        refuse("outage_patience", options.outage_patience);
    }
    if (options.opening_patience < 0ms) {
        refuse("opening_patience", options.opening_patience);
    }
    if (options.handover_time < 0ms) {
        refuse("handover_time", options.handover_time);
    }
    constexpr std::size_t longest_label = 1024;
    const auto size = options.label.size();
    if (size > longest_label || !core::is_utf8(options.label)) {
        failure{errc::invalid_argument, size > longest_label
                                            ? "it has " + std::to_string(size) + " bytes; at most " +
                                                  std::to_string(longest_label) + " are allowed"
                                            : "it is not UTF-8"}
            .raise("client_options::label");
    }
}

[[nodiscard]] std::shared_ptr<detail::session> make_session(std::unique_ptr<engines::engine> engine,
                                                            const engines::client_identity& identity,
                                                            const client_options& options) {
    if (!engine) {
        failure{errc::invalid_argument, "there is no engine"}.raise("client");
    }
    check(options);
    const auto& promises = engine->promises();
    const auto required = std::max(options.require, required_by_environment());
    if (promises.reach < required) {
        failure{errc::guarantee_not_met, "its locks exclude " + promises.reach_text + ", but " +
                                             std::string{to_string(required)} +
                                             " is required; use a store that all hosts share"}
            .raise("store " + engine->address());
    }
    const auto offered = engine->offers();
    if ((promises.latches && offered.latches == nullptr) ||
        (promises.fair && offered.lines == nullptr)) {
        failure{errc::bad_configuration, std::string{"its engine promises "} +
                                             (promises.latches && offered.latches == nullptr
                                                  ? "latches, but not the ability to count them"
                                                  : "fair locks, but keeps no lines")}
            .raise("store " + engine->address());
    }
    auto session = std::make_shared<detail::session>(std::move(engine), identity, options);
    in_our_words([&] { session->start(); });
    return session;
}

/// Tries again while the store cannot be reached, until the patience is over.
template <class Open>
[[nodiscard]] std::unique_ptr<engines::engine> open_patiently(const Open& open,
                                                              std::chrono::milliseconds patience) {
    const auto deadline = detail::deadline_after(patience);
    for (std::chrono::milliseconds pause{50};;
         pause = std::min<std::chrono::milliseconds>(2 * pause, 1s)) {
        try {
            return in_our_words(open);
        } catch (const std::system_error& error) {
            const bool passing =
                error.code() == errc::store_unavailable || error.code() == errc::outcome_unknown;
            if (!passing || clock::now() >= deadline) {
                throw;
            }
        }
        std::this_thread::sleep_for(
            std::min<clock::duration>(pause, std::max<clock::duration>(deadline - clock::now(), 0ms)));
    }
}

/// Opening is a call like others: it waits for one answer, or for as long as the caller is patient.
[[nodiscard]] engines::client_identity identity_for(const client_options& options) {
    auto identity = engines::make_identity(options.label);
    identity.opening_timeout =
        std::min(identity.opening_timeout, std::max(options.request_timeout, options.opening_patience));
    return identity;
}

[[nodiscard]] std::shared_ptr<detail::session> open_session(const std::string& store,
                                                            const client_options& options) {
    check(options);
    const auto identity = identity_for(options);
    return make_session(
        open_patiently([&] { return engines::open(store, identity); }, options.opening_patience),
        identity, options);
}

[[nodiscard]] std::shared_ptr<detail::session> open_session(const quorum& stores,
                                                            const client_options& options) {
    check(options);
    const auto identity = identity_for(options);
    return make_session(open_patiently([&] { return engines::open_quorum(stores, identity); },
                                       options.opening_patience),
                        identity, options);
}

/// Sessions that a forked child inherited. Their threads do not exist here, so nothing may be
/// destroyed.
void keep_forever(std::shared_ptr<detail::session> inherited) {
    static auto* const kept = new std::vector<std::shared_ptr<detail::session>>;
    kept->push_back(std::move(inherited));
}

/// Absent: the client's own `request_timeout`.
void check_timeout(const std::optional<std::chrono::milliseconds>& timeout, const std::string& action) {
    if (timeout && *timeout <= 0ms) {
        failure{errc::invalid_argument,
                "the timeout cannot be " + std::to_string(timeout->count()) + " ms"}
            .raise(action);
    }
}

}  // namespace

client::client() : client{client_options{}} {}

client::client(const client_options& options) : client{default_store(), options} {}

client::client(const std::string& store, const client_options& options)
    : session_{open_session(store, options)} {}

client::client(const quorum& stores, const client_options& options)
    : session_{open_session(stores, options)} {}

client::client(std::unique_ptr<engines::engine> engine, const engines::client_identity& identity,
               const client_options& options)
    : session_{make_session(std::move(engine), identity, options)} {}

client::~client() {
    if (session_->forked()) {
        keep_forever(std::move(session_));
        return;
    }
    static_cast<void>(session_->shut_down(2s));
}

const engines::guarantees& client::promises() const noexcept {
    return session_->promises();
}

const std::string& client::store() const noexcept {
    return session_->address();
}

std::uint64_t client::requests() const noexcept {
    return session_->requests();
}

std::uint64_t client::dropped_events() const noexcept {
    return session_->dropped_events();
}

lock_info client::inspect(std::string_view name, std::optional<std::chrono::milliseconds> timeout) {
    check_timeout(timeout, "cannot inspect " + core::quote_name(name) + " on " + store());
    auto reply = session_->queries().inspect(std::string{name}, timeout);
    if (reply.error) {
        reply.error.raise("cannot inspect " + core::quote_name(name) + " on " + store());
    }
    return std::move(reply.info);
}

lock_page client::list(std::string_view prefix, std::string_view from, std::size_t limit,
                       std::optional<std::chrono::milliseconds> timeout) {
    check_timeout(timeout, "cannot list locks on " + store());
    auto reply = session_->queries().list({std::string{prefix}, std::string{from}, limit}, timeout);
    if (reply.error) {
        reply.error.raise("cannot list locks on " + store());
    }
    return {std::move(reply.locks), std::move(reply.next), std::move(reply.missing)};
}

bool client::revoke(std::string_view name, const owner_id& owner, fencing_token token,
                    const std::string& reason) {
    const auto& card = session_->identity().card;
    const auto actor = card.program + " on " + card.host + ", pid " + std::to_string(card.pid);
    const auto revoke_from = [&](fencing_token first) {
        const auto reply = session_->queries().revoke({std::string{name}, owner, first, actor, reason});
        if (reply.error) {
            reply.error.raise("cannot release " + core::quote_name(name) + " on " + store());
        }
        return reply.result == engines::revoke_reply::outcome::revoked;
    };
    if (revoke_from(token)) {
        return true;
    }
    // A thread that was handed the lock has a later token of the tenure than the first, by which the
    // store knows it.
    for (const auto& holder : inspect(name).holders) {
        if (holder.owner == owner && holder.token < token &&
            token.value - holder.token.value < holder.token_count) {
            return revoke_from(holder.token);
        }
    }
    return false;
}

std::vector<finding> client::examine() {
    auto reply = session_->queries().examine();
    if (reply.error) {
        reply.error.raise("cannot examine " + store());
    }
    return std::move(reply.findings);
}

std::vector<unreleased> client::shutdown(std::chrono::milliseconds timeout) {
    return session_->shut_down(timeout);
}

}  // namespace holdfast
