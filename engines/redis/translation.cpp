#include <redis/translation.hpp>

#include <common/validate.hpp>
#include <records/rules.hpp>
#include <redis/errors.hpp>
#include <redis/layout/keys.hpp>
#include <redis/layout/revocation.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace holdfast::engines::redis {

namespace {

using std::chrono::milliseconds;

/// A revocation can be looked up this long.
constexpr std::chrono::hours revocations_kept{24};
/// A latch request that is sent again this much later counts again.
constexpr std::chrono::minutes latch_requests_remembered{2};

[[nodiscard]] std::int64_t in_ms(milliseconds value) noexcept {
    return value.count();
}

[[nodiscard]] std::int64_t now_in_ms() {
    return in_ms(
        std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()));
}

[[nodiscard]] std::string counter_for(const std::string& key, const dialect& store) {
    if (store.redisson_tokens) {
        return redisson_token(key);
    }
    return store.clustered ? token_counter(slot_of(key)) : token_counter();
}

/// `{name}`, or the name itself when it has braces: what the timeout keys of readers begin with.
[[nodiscard]] std::string reader_prefix(const std::string& key) {
    return key.find('{') == std::string::npos ? "{" + key + "}" : key;
}

[[nodiscard]] std::string my_reader_timeout(const std::string& key, const std::string& owner) {
    return reader_timeout(key, owner) + ":1";
}

/// Two elements, both numbers.
[[nodiscard]] bool is_pair(const value& reply) noexcept {
    return reply.type == value::kind::array && reply.items.size() >= 2 &&
           reply.items[0].type == value::kind::integer && reply.items[1].type == value::kind::integer;
}

/// The next argument: where Redisson counts the tokens, they have nothing to do with a clock.
void add_floor(script_call& call, const dialect& store) {
    if (store.redisson_tokens) {
        call.arguments.add(0);
    } else {
        call.add_floor();
    }
}

/// Go ahead of what is told at a release, and change no number for Redisson. How many they are tells
/// one turn of the others from the next.
[[nodiscard]] std::string zeros_of(const owner_id& owner) {
    return std::string(1 + static_cast<std::uint64_t>(owner.sequence) % 8, '0');
}

[[nodiscard]] script_call permit_acquire_call(const acquire_request& request, const std::string& key,
                                              const dialect& store, int turn) {
    script_call call{&scripts::permit_acquire()};
    call.keys.add(key, semaphore_timeouts(key), semaphore_channel(key), holds_key(key),
                  counter_for(key, store), lock_turn(key), latch_mark(key));
    call.arguments.add(request.owner.text(), in_ms(request.ttl), request.permits, request.limit,
                       request.token_count);
    add_floor(call, store);
    call.arguments.add(now_in_ms(), store.publish, permit_ids(request.owner, request.permits), turn);
    add_absent(call, key, store);
    return call;
}

[[nodiscard]] script_call read_write_acquire_call(const acquire_request& request,
                                                  const std::string& key, const dialect& store,
                                                  int turn) {
    const bool shared = request.mode == claim_mode::shared;
    const auto owner = request.owner.text();
    script_call call{shared ? &scripts::read_acquire() : &scripts::write_acquire()};
    call.keys.add(key, holds_key(key), counter_for(key, store));
    if (shared) {
        call.keys.add(read_write_channel(key));
    }
    call.keys.add(my_reader_timeout(key, owner), lock_turn(key));
    call.arguments.add(owner, in_ms(request.ttl), request.token_count);
    add_floor(call, store);
    call.arguments.add(now_in_ms(), shared ? store.publish : reader_prefix(key),
                       request.token_floor.value, request.converts ? 1 : 0, turn);
    if (request.kind == lock_kind::mixed_mutex) {
        call.arguments.add(1);
    }
    add_absent(call, key, store);
    return call;
}

}  // namespace

bool is_read_write(lock_kind kind) noexcept {
    return kind == lock_kind::shared_mutex || kind == lock_kind::mixed_mutex;
}

void add_absent(script_call& to, const std::string& key, const dialect& store) {
    if (store.clustered) {
        to.keys.add(absent_key(key));
    }
}

std::string permit_ids(const owner_id& owner, std::uint32_t permits) {
    std::string ids;
    ids.reserve(std::size_t{16} * permits);
    const auto append = [&ids](std::uint64_t part) {
        for (int shift = 56; shift >= 0; shift -= 8) {
            ids += static_cast<char>((part >> static_cast<unsigned>(shift)) & 0xffU);
        }
    };
    for (std::uint32_t index = 0; index < permits; ++index) {
        append(owner.high);
        append(owner.low ^ (static_cast<std::uint64_t>(owner.sequence) * most_permits + index));
    }
    return ids;
}

script_call acquire_call(const acquire_request& request, const std::string& key, const dialect& store,
                         std::int64_t question, int turn) {
    if (request.mode == claim_mode::permit) {
        return permit_acquire_call(request, key, store, turn);
    }
    if (is_read_write(request.kind)) {
        return read_write_acquire_call(request, key, store, turn);
    }
    const bool fair = request.kind == lock_kind::fair_mutex;
    script_call call{fair ? &scripts::fair_acquire() : &scripts::lock_acquire()};
    if (fair) {
        call.keys.add(key, fair_queue(key), fair_timeouts(key), holds_key(key), counter_for(key, store),
                      fair_wishes(key), lock_channel(key));
    } else {
        call.keys.add(key, holds_key(key), counter_for(key, store), lock_turn(key));
    }
    call.arguments.add(request.owner.text(), in_ms(request.ttl), request.token_count);
    add_floor(call, store);
    call.arguments.add(now_in_ms());
    if (fair) {
        call.arguments.add(in_ms(fair_patience), request.queue ? 1 : 0);
    }
    if (fair) {
        call.arguments.add(request.token_floor.value, question, store.publish);
    } else if (question != 0) {
        call.keys.add(lock_wishes(key));
        call.arguments.add(request.token_floor.value, turn, question, in_ms(request_patience),
                           store.publish, lock_channel(key), listeners_channel(key),
                           grant_channels(key));
    } else if (request.token_floor.value != 0 || turn != 0) {
        call.arguments.add(request.token_floor.value, turn);
    }
    add_absent(call, key, store);
    return call;
}

acquire_reply acquire_answer(const value& reply, const acquire_request& request) {
    acquire_reply answer;
    if (reply.is_error()) {
        answer.error = meaning_of(reply);
        return answer;
    }
    if (!is_pair(reply)) {
        answer.error = senseless_answer("acquire");
        return answer;
    }
    if (reply.items[0].integer < 0) {
        answer.error = records::loss_of(request.owner, nullptr);
        return answer;
    }
    if (reply.items[0].integer == 0) {
        answer.result = acquire_reply::outcome::busy;
        answer.retry_after = milliseconds{std::max<std::int64_t>(reply.items[1].integer, 0)};
        return answer;
    }
    answer.result = acquire_reply::outcome::granted;
    answer.first_token = {static_cast<std::uint64_t>(reply.items[1].integer)};
    answer.token_count = reply.items.size() > 2 ? static_cast<std::uint32_t>(reply.items[2].integer)
                                                : request.token_count;
    return answer;
}

int turn_in_the_way(const value& reply) noexcept {
    const bool said = is_pair(reply) && reply.items[0].integer == 0 && reply.items.size() > 2;
    return said ? static_cast<int>(reply.items[2].integer) : 0;
}

bool says_listening(const value& reply) noexcept {
    return is_pair(reply) && reply.items[0].integer == 0 && reply.items.size() > 2 &&
           reply.items[2].integer == 1;
}

script_call acquire_all_call(const std::vector<acquire_request>& all,
                             const std::vector<std::string>& keys, const dialect& store) {
    script_call call{&scripts::lock_acquire_all()};
    add_floor(call, store);
    call.arguments.add(now_in_ms());
    for (std::size_t index = 0; index < all.size(); ++index) {
        const auto& key = keys[index];
        const auto& request = all[index];
        call.keys.add(key, holds_key(key), counter_for(key, store), lock_turn(key));
        call.arguments.add(request.owner.text(), in_ms(request.ttl), request.token_count,
                           request.token_floor.value);
    }
    add_absent(call, keys.front(), store);
    return call;
}

acquire_all_reply acquire_all_answer(const value& reply, std::size_t count) {
    acquire_all_reply answer;
    if (reply.is_error()) {
        answer.error = meaning_of(reply);
        return answer;
    }
    const bool all_numbers = reply.type == value::kind::array && !reply.items.empty() &&
                             std::all_of(reply.items.begin(), reply.items.end(), [](const value& item) {
                                 return item.type == value::kind::integer;
                             });
    const bool given = all_numbers && reply.items[0].integer == 1;
    if (!all_numbers || reply.items.size() != (given ? 1 + 2 * count : 3)) {
        answer.error = senseless_answer("acquire_all");
        return answer;
    }
    if (!given) {
        answer.result = acquire_reply::outcome::busy;
        answer.busy = static_cast<std::size_t>(reply.items[1].integer - 1);
        answer.retry_after = milliseconds{std::max<std::int64_t>(reply.items[2].integer, 0)};
        return answer;
    }
    answer.result = acquire_reply::outcome::granted;
    for (std::size_t index = 1; index < reply.items.size(); index += 2) {
        answer.grants.push_back({{static_cast<std::uint64_t>(reply.items[index].integer)},
                                 static_cast<std::uint32_t>(reply.items[index + 1].integer)});
    }
    return answer;
}

std::optional<turn_message> read_turn(std::string_view message) {
    constexpr std::string_view granted = "granted ";
    if (!message.starts_with(granted)) {
        return std::nullopt;
    }
    message.remove_prefix(granted.size());
    turn_message told;
    const auto take = [&message](auto& number) {
        const auto* const end = message.data() + message.size();
        const auto read = std::from_chars(message.data(), end, number);
        const bool ends_well = read.ptr == end || *read.ptr == ' ';
        message.remove_prefix(static_cast<std::size_t>(read.ptr - message.data()));
        message.remove_prefix(message.empty() ? 0 : 1);
        return read.ec == std::errc{} && ends_well;
    };
    const bool numbers = take(told.question) && take(told.first_token.value) && take(told.token_count);
    const auto blank = message.find(' ');
    if (!numbers || blank == std::string_view::npos) {
        return std::nullopt;
    }
    told.owner = message.substr(0, blank);
    told.key = message.substr(blank + 1);
    return told;
}

script_call release_call(const release_request& request, const std::string& key, const dialect& store) {
    script_call call;
    const auto owner = request.owner.text();
    const auto linger = in_ms(request.linger);
    call.arguments.add(owner, store.publish);
    if (request.mode == claim_mode::exclusive && request.kind == lock_kind::mutex) {
        call.source = &scripts::lock_release();
        call.keys.add(key, holds_key(key), lock_channel(key), lock_wishes(key), counter_for(key, store),
                      lock_turn(key));
        call.arguments.add(now_in_ms());
        add_floor(call, store);
        call.arguments.add(grant_channels(key), listeners_channel(key), zeros_of(request.owner) + "0");
        if (linger > 0) {
            call.arguments.add(linger);
        }
        add_absent(call, key, store);
        return call;
    }
    call.arguments.add(linger);
    if (request.mode == claim_mode::permit) {
        call.source = &scripts::permit_release();
        call.keys.add(key, semaphore_timeouts(key), semaphore_channel(key), holds_key(key),
                      lock_turn(key));
        // All that the owner has.
        call.arguments.add("", zeros_of(request.owner), listeners_channel(key));
    } else if (request.kind == lock_kind::fair_mutex) {
        call.source = &scripts::fair_release();
        call.keys.add(key, fair_queue(key), fair_timeouts(key), holds_key(key), lock_channel(key),
                      fair_wishes(key), counter_for(key, store));
        call.arguments.add(in_ms(fair_patience));
        add_floor(call, store);
        call.tells_first = request.contended;
    } else {
        call.source = &scripts::read_write_release();
        call.keys.add(key, holds_key(key), read_write_channel(key), my_reader_timeout(key, owner),
                      lock_turn(key));
        call.arguments.add(reader_prefix(key), zeros_of(request.owner), listeners_channel(key));
    }
    add_absent(call, key, store);
    return call;
}

release_reply release_answer(const value& reply) {
    release_reply answer;
    if (reply.is_error()) {
        answer.error = meaning_of(reply);
    } else if (!is_pair(reply)) {
        answer.error = senseless_answer("release");
    } else if (reply.items[0].integer == 0) {
        answer.result = release_reply::outcome::gone;
    } else {
        answer.result = release_reply::outcome::released;
        answer.others_waiting = static_cast<std::uint32_t>(reply.items[1].integer);
    }
    return answer;
}

failure telling_trouble(const value& reply, const dialect& store) {
    if (!is_pair(reply) || reply.items.size() < 3) {
        return {};
    }
    value refusal;
    refusal.type = value::kind::error;
    // As `refusal` in the scripts names a command.
    refusal.text =
        reply.items[2].text + (store.publish == "spublish" ? " in `SPUBLISH`" : " in `PUBLISH`");
    return meaning_of(refusal);
}

renewal_script script_for(const renew_request& request) noexcept {
    switch (request.mode) {
        case claim_mode::permit:
            return renewal_script::permit;
        case claim_mode::shared:
            return renewal_script::reader;
        case claim_mode::exclusive:
            break;
    }
    return renewal_script::lock;
}

script_call renewal_call(renewal_script which) {
    return {which == renewal_script::permit   ? &scripts::permit_renew()
            : which == renewal_script::reader ? &scripts::read_renew()
                                              : &scripts::lock_renew()};
}

void add_renewal(script_call& to, const renew_request& request, const std::string& key) {
    const auto owner = request.owner.text();
    switch (script_for(request)) {
        case renewal_script::permit:
            to.keys.add(semaphore_timeouts(key));
            break;
        case renewal_script::reader:
            to.keys.add(key, my_reader_timeout(key, owner));
            break;
        case renewal_script::lock:
            to.keys.add(key);
            to.arguments.add(is_read_write(request.kind) ? owner + ":write" : owner);
            break;
    }
    to.keys.add(holds_key(key), revocation_key(key));
    to.arguments.add(owner, in_ms(request.ttl));
    if (request.mode == claim_mode::permit) {
        to.arguments.add("");  // all that the owner has
    }
}

renew_reply renewal_answer(const value& item, const owner_id& owner) {
    renew_reply answer;
    if (item.is_error()) {
        answer.error = meaning_of(item);
        return answer;
    }
    if (item.type == value::kind::integer && item.integer == 1) {
        answer.result = renew_reply::outcome::renewed;
        return answer;
    }
    const auto record = item.type == value::kind::text ? read_revocation(item.text) : std::nullopt;
    answer.result = renew_reply::outcome::gone;
    answer.error = records::loss_of(owner, record ? &*record : nullptr);
    return answer;
}

script_call latch_call(const latch_request& request, const std::string& key, const dialect& store) {
    using operation = latch_request::operation;
    const auto* const operation_name = request.what == operation::read  ? "read"
                                       : request.what == operation::set ? "set"
                                                                        : "count_down";
    script_call call{&scripts::latch()};
    call.keys.add(key, latch_channel(key), latch_request_key(key, request.request.text()),
                  latch_mark(key), holds_key(key));
    call.arguments.add(operation_name, request.count, in_ms(request.lifetime), store.publish,
                       in_ms(latch_requests_remembered), in_ms(opened_latch_known),
                       latch_life::begin(request.request).line);
    add_absent(call, key, store);
    return call;
}

latch_reply latch_answer(const value& reply) {
    latch_reply answer;
    if (reply.is_error()) {
        answer.error = meaning_of(reply);
    } else if (!is_pair(reply) || reply.items.size() < 3) {
        answer.error = senseless_answer("a latch operation");
    } else {
        // Java counts further than we do.
        answer.count = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
            reply.items[0].integer, 0, std::numeric_limits<std::uint32_t>::max()));
        answer.applied = reply.items[1].integer != 0;
        answer.known = reply.items[2].integer != 0;
        if (reply.items.size() >= 5) {
            answer.life = {static_cast<std::uint64_t>(reply.items[4].integer),
                           static_cast<std::uint32_t>(reply.items[3].integer)};
        }
    }
    return answer;
}

script_call revoke_call(const revoke_request& request, const std::string& key, const dialect& store,
                        std::chrono::system_clock::time_point at) {
    const auto owner = request.owner.text();
    const auto record =
        write_revocation({request.owner, request.token, request.actor, request.reason, at});
    script_call call{&scripts::revoke()};
    call.keys.add(key, holds_key(key), revocation_key(key), lock_channel(key), read_write_channel(key),
                  semaphore_channel(key), semaphore_timeouts(key), fair_queue(key),
                  my_reader_timeout(key, owner));
    call.arguments.add(owner, request.token.value, record, in_ms(revocations_kept), store.publish,
                       client_channel(request.owner.client_text()), lock_channel(key),
                       reader_prefix(key));
    add_absent(call, key, store);
    return call;
}

revoke_reply revoke_answer(const value& reply) {
    revoke_reply answer;
    if (reply.is_error()) {
        answer.error = meaning_of(reply);
    } else if (reply.type != value::kind::array || reply.items.empty()) {
        answer.error = senseless_answer("revoke");
    } else {
        answer.result =
            reply.items[0].integer == 1 ? revoke_reply::outcome::revoked : revoke_reply::outcome::gone;
    }
    return answer;
}

script_call inspect_call(const std::string& key, const dialect& store) {
    script_call call{&scripts::inspect()};
    call.keys.add(key, holds_key(key), revocation_key(key), semaphore_timeouts(key), fair_queue(key),
                  latch_mark(key));
    call.arguments.add(reader_prefix(key));
    add_absent(call, key, store);
    return call;
}

std::string channel_of(lock_kind kind, const std::string& key) {
    switch (kind) {
        case lock_kind::shared_mutex:
        case lock_kind::mixed_mutex:
            return read_write_channel(key);
        case lock_kind::semaphore:
            return semaphore_channel(key);
        case lock_kind::latch:
            return latch_channel(key);
        case lock_kind::mutex:
        case lock_kind::fair_mutex:
            break;
    }
    return lock_channel(key);
}

}  // namespace holdfast::engines::redis
