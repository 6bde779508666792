#include <holdfast/client.hpp>

#include <core/names.hpp>
#include <holdfast/quorum.hpp>
#include <runtime/session.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace holdfast {

namespace {

using namespace std::chrono_literals;

[[nodiscard]] std::string default_store() {
    const char* chosen = std::getenv("HOLDFAST_STORE");
    return chosen != nullptr && *chosen != '\0' ? chosen : "local:";
}

[[nodiscard]] std::string_view text(scope reach) {
    switch (reach) {
        case scope::process:
            return "process";
        case scope::host:
            return "host";
        case scope::fleet:
            return "fleet";
    }
    return "unknown";
}

/// What `HOLDFAST_REQUIRE` asks for: an operator may demand more than a program does, never less.
[[nodiscard]] scope required_by_environment() {
    const char* const wanted = std::getenv("HOLDFAST_REQUIRE");
    if (wanted == nullptr || *wanted == '\0') {
        return scope::process;
    }
    for (const auto reach : {scope::process, scope::host, scope::fleet}) {
        if (text(reach) == wanted) {
            return reach;
        }
    }
    failure{errc::bad_configuration, "write process, host or fleet"}.raise("HOLDFAST_REQUIRE is " +
                                                                           core::quote_name(wanted));
}

[[nodiscard]] std::shared_ptr<detail::session> make_session(std::unique_ptr<engines::engine> engine,
                                                            const engines::client_identity& identity,
                                                            const client_options& options) {
    if (!engine) {
        failure{errc::invalid_argument, "there is no engine"}.raise("client");
    }
    const auto& promises = engine->promises();
    const auto required = std::max(options.require, required_by_environment());
    if (promises.reach < required) {
        failure{errc::guarantee_not_met, "its locks exclude " + promises.reach_text + ", but " +
                                             std::string{text(required)} +
                                             " is required; use a store that all hosts share"}
            .raise("store " + engine->address());
    }
    if (options.request_timeout <= 0ms || options.outage_patience < 0ms ||
        options.handover_time < 0ms) {
        failure{errc::invalid_argument, "the client's timeouts must be positive"}.raise(
            "store " + engine->address());
    }
    auto session = std::make_shared<detail::session>(std::move(engine), identity, options);
    session->start();
    return session;
}

[[nodiscard]] std::shared_ptr<detail::session> open_session(const std::string& store,
                                                            const client_options& options) {
    const auto identity = engines::make_identity(options.label);
    return make_session(engines::open(store, identity), identity, options);
}

[[nodiscard]] std::shared_ptr<detail::session> open_session(const quorum& stores,
                                                            const client_options& options) {
    const auto identity = engines::make_identity(options.label);
    return make_session(engines::open_quorum(stores, identity), identity, options);
}

/// Sessions that a forked child inherited. Their threads do not exist here, so nothing may be
/// destroyed.
void keep_forever(std::shared_ptr<detail::session> inherited) {
    static auto* const kept = new std::vector<std::shared_ptr<detail::session>>;
    kept->push_back(std::move(inherited));
}

}  // namespace

client::client() : client{default_store()} {}

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

lock_info client::inspect(std::string_view name) {
    auto reply = session_->inspect(std::string{name});
    if (reply.error) {
        reply.error.raise("cannot inspect " + core::quote_name(name) + " on " + store());
    }
    return std::move(reply.info);
}

lock_page client::list(std::string_view prefix, std::string_view from, std::size_t limit) {
    auto reply = session_->list({std::string{prefix}, std::string{from}, limit});
    if (reply.error) {
        reply.error.raise("cannot list locks on " + store());
    }
    return {std::move(reply.locks), std::move(reply.next)};
}

bool client::revoke(std::string_view name, const owner_id& owner, fencing_token token,
                    const std::string& reason) {
    const auto& card = session_->identity().card;
    const auto actor = card.program + " on " + card.host + ", pid " + std::to_string(card.pid);
    const auto reply = session_->revoke({std::string{name}, owner, token, actor, reason});
    if (reply.error) {
        reply.error.raise("cannot release " + core::quote_name(name) + " on " + store());
    }
    return reply.result == engines::revoke_reply::outcome::revoked;
}

std::vector<finding> client::examine() {
    auto reply = session_->examine();
    if (reply.error) {
        reply.error.raise("cannot examine " + store());
    }
    return std::move(reply.findings);
}

std::vector<unreleased> client::shutdown(std::chrono::milliseconds timeout) {
    return session_->shut_down(timeout);
}

}  // namespace holdfast
