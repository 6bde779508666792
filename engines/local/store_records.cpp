// The part of store_connection that describes and counts: holders and their cards, revocations,
// latches.
#include <algorithm>
#include <local/rows.hpp>
#include <local/store_connection.hpp>
#include <local/transaction.hpp>

namespace holdfast::engines::local {

namespace {

constexpr std::int64_t remembered_latch_requests = 4096;
/// Of idle clients whose processes nobody here can see. All others go when they end, and no sooner.
constexpr std::size_t remembered_clients = 4096;

}  // namespace

std::vector<seen_hold> store_connection::holders(std::string_view name) {
    std::vector<seen_hold> found;
    scan(name, name, [&](seen_hold&& seen) {
        if (seen.name != name) {
            return false;
        }
        found.push_back(std::move(seen));
        return true;
    });
    std::sort(found.begin(), found.end(), [](const seen_hold& left, const seen_hold& right) {
        return left.hold.first_token < right.hold.first_token;
    });
    return found;
}

void store_connection::scan(std::string_view first, std::string_view prefix,
                            const std::function<bool(seen_hold&&)>& more) {
    // The row of the token counter has the empty name.
    constexpr std::string_view before_all_names{"\0", 1};
    const statement_use use{select_seen_};
    select_seen_.bind(1, first.empty() ? before_all_names : first).bind(2, to_number(clock::now()));
    while (select_seen_.step()) {
        if (!select_seen_.bytes(0).starts_with(prefix) || !more(read_seen_hold(select_seen_))) {
            return;
        }
    }
}

seen_hold store_connection::read_seen_hold(const statement& row) const {
    seen_hold seen;
    seen.name = row.bytes(0);
    seen.hold = {.owner = to_owner(row.bytes(1)),
                 .mode = static_cast<claim_mode>(row.number(2)),
                 .permits = static_cast<std::uint32_t>(row.number(3)),
                 .limit = static_cast<std::uint32_t>(row.number(4)),
                 .first_token = {static_cast<std::uint64_t>(row.number(5))},
                 .token_count = static_cast<std::uint32_t>(row.number(6)),
                 .since = to_wall_time(row.number(7)),
                 .expires = to_time(row.number(8)),
                 .lingering = row.number(9) != 0};
    if (!row.is_null(14)) {
        seen.card = holder_card{std::string{row.bytes(10)}, row.number(11), std::string{row.bytes(12)},
                                std::string{row.bytes(13)}};
        seen.process = {row.number(14), static_cast<std::uint64_t>(row.number(15)),
                        static_cast<std::uint64_t>(row.number(16))};
    }
    return seen;
}

std::optional<revocation_info> store_connection::last_revocation(std::string_view name) {
    const statement_use use{select_revocation_};
    statement& row = select_revocation_;
    if (!row.bind(1, name).step()) {
        return std::nullopt;
    }
    return revocation_info{to_owner(row.bytes(0)),
                           {static_cast<std::uint64_t>(row.number(1))},
                           std::string{row.bytes(2)},
                           std::string{row.bytes(3)},
                           to_wall_time(row.number(4))};
}

void store_connection::enter(const client_identity& identity, const process_ref& process) {
    transaction change{database_};
    raise_counter();
    leave_card(identity, process);
    change.commit();
}

/// The counter may be behind tokens that were granted: the last grants were in a journal that was
/// deleted or cut, or that never reached the disk, or the database is a copy of an earlier one.
void store_connection::raise_counter() {
    statement raise{database_,
                    "UPDATE hold SET token = max(token, ?1) WHERE name = x'' AND owner = x''"};
    raise.bind(1, to_number(std::chrono::system_clock::now())).run();
}

void store_connection::leave_card(const client_identity& identity, const process_ref& process) {
    const owner_bytes client = to_bytes(identity.client);
    statement insert{
        database_,
        "INSERT OR REPLACE INTO client(id, host, card_pid, program, label, pid, start_time, "
        "pid_namespace) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"};
    insert.bind(1, client_view(client))
        .bind(2, identity.card.host)
        .bind(3, identity.card.pid)
        .bind(4, identity.card.program)
        .bind(5, identity.card.label)
        .bind(6, process.pid)
        .bind(7, static_cast<std::int64_t>(process.start_time))
        .bind(8, static_cast<std::int64_t>(process.pid_namespace))
        .run();
}

void store_connection::take_card_back(const owner_id& client) {
    const owner_bytes bytes = to_bytes(client);
    statement remove{database_,
                     "DELETE FROM client WHERE id = ?1 AND NOT EXISTS "
                     "(SELECT 1 FROM hold WHERE substr(owner, 1, 16) = ?1)"};
    remove.bind(1, client_view(bytes)).run();
}

void store_connection::sweep(const process_ref& observer) {
    const std::vector<std::int64_t> ended = superfluous_cards(observer);
    transaction change{database_};
    const std::int64_t now = to_number(clock::now());
    statement holds{database_, "DELETE FROM hold WHERE expires <= ?1 AND expires & 65535 <> 0"};
    holds.bind(1, now).run();
    forget_latches_.bind(1, now).run();
    // One that we could not see may hold something by now.
    statement remove{database_,
                     "DELETE FROM client WHERE sequence = ?1 AND "
                     "id NOT IN (SELECT substr(owner, 1, 16) FROM hold WHERE name <> x'')"};
    for (const std::int64_t sequence : ended) {
        remove.bind(1, sequence).run();
    }
    change.commit();
}

std::vector<std::int64_t> store_connection::superfluous_cards(const process_ref& observer) {
    std::vector<std::int64_t> superfluous;
    std::size_t unseen = 0;
    // The token counter's row must stay out: `substr` of its empty owner is NULL, and nothing is NOT IN
    // a set with NULL.
    statement idle{database_,
                   "SELECT sequence, pid, start_time, pid_namespace FROM client "
                   "WHERE id NOT IN (SELECT substr(owner, 1, 16) FROM hold WHERE name <> x'') ORDER BY "
                   "sequence DESC"};
    while (idle.step()) {
        const process_ref process{idle.number(1), static_cast<std::uint64_t>(idle.number(2)),
                                  static_cast<std::uint64_t>(idle.number(3))};
        const liveness state = liveness_of(process, observer);
        unseen += state == liveness::unknown ? 1 : 0;
        if (state == liveness::dead || (state == liveness::unknown && unseen > remembered_clients)) {
            superfluous.push_back(idle.number(0));
        }
    }
    return superfluous;
}

latch_reply store_connection::read_latch(std::string_view name) {
    check_long_names(select_torn_latch_, name);
    const statement_use use{select_latch_};
    latch_reply reply;
    reply.known = select_latch_.bind(1, name).bind(2, to_number(clock::now())).step();
    if (reply.known) {
        reply.count = static_cast<std::uint32_t>(select_latch_.number(0));
        reply.life = {static_cast<std::uint64_t>(select_latch_.number(1)),
                      static_cast<std::uint32_t>(select_latch_.number(2))};
    }
    return reply;
}

latch_reply store_connection::latch(const latch_request& request) {
    const bool sets = request.what == latch_request::operation::set;
    transaction change{database_};
    latch_reply reply = read_latch(request.name);
    if (is_marked(request)) {
        reply.applied = true;
        return reply;
    }
    if (sets != (reply.count == 0)) {
        return reply;
    }
    mark(request);
    reply.applied = true;
    if (sets) {
        reply.life = reply.known ? reply.life : latch_life::begin(request.request);
        reply.count = request.count;
        write_latch(request.name, reply, clock::now() + request.lifetime);
    } else if (reply.count > request.count) {
        reply.count -= request.count;
        count_latch_.bind(1, request.name).bind(2, std::int64_t{reply.count}).run();
    } else {
        reply.count = 0;
        ++reply.life.openings;
        open_latch(request.name, reply);
    }
    reply.known = true;
    change.commit();
    return reply;
}

bool store_connection::is_marked(const latch_request& request) {
    if (request.request == owner_id{}) {
        return false;
    }
    const statement_use use{select_mark_};
    const owner_bytes id = to_bytes(request.request);
    return select_mark_.bind(1, view(id)).bind(2, request.name).step();
}

/// Marks outlive their latch: a request that is sent again after the latch opened, and was set anew,
/// must not count in its next life.
void store_connection::mark(const latch_request& request) {
    if (request.request == owner_id{}) {
        return;
    }
    const owner_bytes id = to_bytes(request.request);
    insert_mark_.bind(1, view(id)).bind(2, request.name).run();
    trim_marks_.bind(1, database_.last_row_id() - remembered_latch_requests).run();
}

void store_connection::write_latch(std::string_view name, const latch_reply& state,
                                   clock::time_point expires) {
    set_latch_.bind(1, name)
        .bind(2, std::int64_t{state.count})
        .bind(3, to_number(expires))
        .bind(4, static_cast<std::int64_t>(state.life.line))
        .bind(5, std::int64_t{state.life.openings})
        .run();
}

/// A latch that opened stays as a row that counts zero. Those that are over go here: a program that
/// uses latches only is never granted anything, and sweeps follow grants.
void store_connection::open_latch(std::string_view name, const latch_reply& state) {
    const auto now = clock::now();
    forget_latches_.bind(1, to_number(now)).run();
    write_latch(name, state, now + opened_latch_known);
}

}  // namespace holdfast::engines::local
