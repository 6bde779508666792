#include <algorithm>
#include <common/validate.hpp>
#include <local/rows.hpp>
#include <local/store_connection.hpp>
#include <local/transaction.hpp>

namespace holdfast::engines::local {

namespace {

constexpr std::int64_t remembered_revocations = 1024;

}  // namespace

store_connection::~store_connection() {
    if (!files_.intact()) {
        database_.end_without_checkpoint();
    }
}

store_connection::acquired store_connection::acquire(const acquire_request& request,
                                                     std::span<const owner_id> dead) {
    transaction change{database_};
    // The clock is read with the write lock in hand: waiting for it must not eat into the lease, nor
    // let an expired hold look alive.
    const records::moment at{clock::now(), std::chrono::system_clock::now()};
    check_long_names(select_torn_hold_, request.name);
    read_holds(request.name);
    forget_expired_and_dead(request, at.now, dead);
    std::uint64_t last_token = last_token_.value_or(0);
    const records::acquire_outcome result = records::acquire(holds_, request, at, last_token);
    if (!result.changed) {
        return {result.reply, false};
    }
    if (last_token != last_token_.value_or(0)) {
        if (!last_token_) {
            fail_without_counter();
        }
        set_counter_.bind(1, static_cast<std::int64_t>(last_token)).run();
    }
    if (result.added) {
        insert(request.name, holds_[result.own]);
    } else {
        update(request.name, holds_[result.own]);
    }
    change.commit();
    return {result.reply, result.freed};
}

std::optional<acquire_reply> store_connection::look_before_acquire(const acquire_request& request) {
    const auto now = clock::now();
    read_holds(request.name);
    records::drop_ended(holds_, now);
    return records::refusal_of(request, holds_, now);
}

void store_connection::renew(std::span<const renew_request> batch, std::span<renew_reply> replies) {
    {
        transaction change{database_};
        const auto now = clock::now();
        for (std::size_t index = 0; index < batch.size(); ++index) {
            const renew_request& request = batch[index];
            const owner_bytes owner = to_bytes(request.owner);
            renew_.bind(1, request.name)
                .bind(2, view(owner))
                .bind(3, to_number(now + request.ttl))
                .bind(4, to_number(now))
                .bind(5, static_cast<std::int64_t>(request.mode))
                .run();
            replies[index].result =
                database_.changes() > 0 ? renew_reply::outcome::renewed : renew_reply::outcome::gone;
        }
        change.commit();
    }
    for (std::size_t index = 0; index < batch.size(); ++index) {
        if (replies[index].result == renew_reply::outcome::gone) {
            const auto last = last_revocation(batch[index].name);
            replies[index].error = records::loss_of(batch[index].owner, last ? &*last : nullptr);
        }
    }
}

release_reply store_connection::release(const release_request& request) {
    const owner_bytes owner = to_bytes(request.owner);
    const auto now = clock::now();
    statement& change = request.linger.count() > 0 ? linger_ : release_;
    change.bind(1, request.name).bind(2, view(owner)).bind(3, to_number(now));
    if (request.linger.count() > 0) {
        change.bind(4, to_number(now + request.linger));
    }
    change.run();
    release_reply reply;
    if (database_.changes() > 0 || (request.linger.count() > 0 && lingers(request, now))) {
        reply.result = release_reply::outcome::released;
        return reply;
    }
    reply.result = release_reply::outcome::gone;
    const auto last = last_revocation(request.name);
    reply.error = records::loss_of(request.owner, last ? &*last : nullptr);
    return reply;
}

/// A request to linger that was sent again.
bool store_connection::lingers(const release_request& request, clock::time_point now) {
    read_holds(request.name);
    return std::any_of(holds_.begin(), holds_.end(), [&](const records::hold& hold) {
        return hold.owner == request.owner && hold.lingering && hold.expires > now;
    });
}

revoke_reply store_connection::revoke(const revoke_request& request) {
    transaction change{database_};
    const owner_bytes owner = to_bytes(request.owner);
    const auto token = static_cast<std::int64_t>(request.token.value);
    revoke_.bind(1, request.name)
        .bind(2, view(owner))
        .bind(3, token)
        .bind(4, to_number(clock::now()))
        .run();
    revoke_reply reply;
    if (database_.changes() == 0) {
        reply.result = revoke_reply::outcome::gone;
        return reply;
    }
    insert_revocation_.bind(1, request.name)
        .bind(2, view(owner))
        .bind(3, token)
        .bind(4, shortened(request.actor, longest_remark))
        .bind(5, shortened(request.reason, longest_remark))
        .bind(6, to_number(std::chrono::system_clock::now()))
        .run();
    trim_revocations_.bind(1, database_.last_row_id() - remembered_revocations).run();
    change.commit();
    reply.result = revoke_reply::outcome::revoked;
    return reply;
}

void store_connection::read_holds(std::string_view name) {
    holds_.clear();
    last_token_.reset();
    const statement_use use{select_holds_};
    const statement& row = select_holds_;
    select_holds_.bind(1, name);
    while (select_holds_.step()) {
        if (row.bytes(0).empty()) {
            last_token_ = static_cast<std::uint64_t>(row.number(4));
            continue;
        }
        holds_.push_back({.owner = to_owner(row.bytes(0)),
                          .mode = static_cast<claim_mode>(row.number(1)),
                          .permits = static_cast<std::uint32_t>(row.number(2)),
                          .limit = static_cast<std::uint32_t>(row.number(3)),
                          .first_token = {static_cast<std::uint64_t>(row.number(4))},
                          .token_count = static_cast<std::uint32_t>(row.number(5)),
                          .since = to_wall_time(row.number(6)),
                          .expires = to_time(row.number(7)),
                          .lingering = row.number(8) != 0});
    }
}

/// SQLite keeps the end of a long row on a page of its own. Where somebody has cut a file short, such a
/// page reads as zeros, which SQLite takes for content: the name is another then, and the row would not
/// be found, or looks expired. But `expires`, which comes after the name, then ends in zeros, as no
/// time does that we write; and the beginning of the name is still there.
void store_connection::check_long_names(statement& select_torn, std::string_view name) {
    constexpr std::size_t always_on_the_first_page = 64;
    constexpr std::size_t longest_in_one_piece = 120;
    if (name.size() <= longest_in_one_piece) {
        return;
    }
    const auto first = name.substr(0, always_on_the_first_page);
    const std::string after_last = std::string{first} + '\xFF';  // in no name: they are UTF-8
    const statement_use use{select_torn};
    if (select_torn.bind(1, first).bind(2, after_last).step()) {
        fail_damaged();
    }
}

void store_connection::fail_damaged() const {
    throw database_error{{errc::store_error,
                          files_.database() +
                              " is damaged: a file of the store was cut short while in use; stop every "
                              "program that uses it first, then delete it"}};
}

void store_connection::forget_expired_and_dead(const acquire_request& request, clock::time_point now,
                                               std::span<const owner_id> dead) {
    const auto is_over = [&](const records::hold& hold) {
        const bool abandoned =
            !hold.lingering && std::any_of(dead.begin(), dead.end(), [&](const owner_id& client) {
                return client.same_client(hold.owner);
            });
        return abandoned || hold.expires <= now;
    };
    for (const records::hold& hold : holds_) {
        if (is_over(hold)) {
            delete_hold(request.name, hold.owner);
        }
    }
    std::erase_if(holds_, is_over);
}

void store_connection::delete_hold(std::string_view name, const owner_id& owner) {
    const owner_bytes bytes = to_bytes(owner);
    delete_hold_.bind(1, name).bind(2, view(bytes)).run();
}

void store_connection::fail_without_counter() const {
    throw database_error{{errc::store_error, files_.database() +
                                                 " has lost its token counter; stop every program that "
                                                 "uses it first, then delete it"}};
}

void store_connection::insert(std::string_view name, const records::hold& hold) {
    const owner_bytes owner = to_bytes(hold.owner);
    insert_hold_.bind(1, name)
        .bind(2, view(owner))
        .bind(3, static_cast<std::int64_t>(hold.mode))
        .bind(4, std::int64_t{hold.permits})
        .bind(5, std::int64_t{hold.limit})
        .bind(6, static_cast<std::int64_t>(hold.first_token.value))
        .bind(7, std::int64_t{hold.token_count})
        .bind(8, to_number(hold.since))
        .bind(9, to_number(hold.expires))
        .run();
}

void store_connection::update(std::string_view name, const records::hold& hold) {
    const owner_bytes owner = to_bytes(hold.owner);
    update_hold_.bind(1, name)
        .bind(2, view(owner))
        .bind(3, static_cast<std::int64_t>(hold.mode))
        .bind(4, static_cast<std::int64_t>(hold.first_token.value))
        .bind(5, std::int64_t{hold.token_count})
        .bind(6, to_number(hold.expires))
        .run();
}

}  // namespace holdfast::engines::local
