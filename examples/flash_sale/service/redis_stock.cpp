#include <array>
#include <utility>
#include <vector>

#include <holdfast/guard/redis.hpp>

#include "pool.hpp"
#include "redis_link.hpp"
#include "stock.hpp"

namespace flash_sale {

namespace {

namespace guard = holdfast::guard;

// KEYS: the segment. ARGV: the order's field, its request. Returns what is left, or -1.
constexpr std::string_view take_one = R"(
local units = tonumber(redis.call('HGET', KEYS[1], 'units') or '0')
if units <= 0 then
    return -1
end
redis.call('HSET', KEYS[1], 'units', units - 1, ARGV[1], ARGV[2])
return units - 1
)";

std::string key_of(std::size_t segment) {
    return "inventory001:" + std::to_string(segment);
}

/// The fields to write, and the texts that they refer to.
struct fields_of {
    fields_of(std::int64_t remaining, std::span<const order> orders)
        : units{std::to_string(remaining)} {
        names.reserve(orders.size());
        fields.emplace_back("units", units);
        for (const auto& taken : orders) {
            names.push_back("order:" + taken.id);
            fields.emplace_back(names.back(), taken.request);
        }
    }
    fields_of(const fields_of&) = delete;
    fields_of& operator=(const fields_of&) = delete;

    std::string units;
    std::vector<std::string> names;
    std::vector<std::pair<std::string_view, std::string_view>> fields;
};

std::int64_t read_units(redis_link& store, const std::string& key) {
    const std::array<std::string_view, 3> words{"HGET", key, "units"};
    const auto said = store.command(words);
    return said->type == REDIS_REPLY_STRING ? std::stoll(std::string(said->str, said->len)) : 0;
}

class redis_stock final : public stock {
public:
    redis_stock(const std::string& address, std::size_t connections)
        : connections_{connections, [&] { return std::make_unique<redis_link>(address); }} {}

    std::int64_t units(std::size_t segment) override {
        return read_units(*connections_.borrow(), key_of(segment));
    }

    void book(std::size_t segment, std::int64_t remaining, std::span<const order> orders) override {
        const auto key = key_of(segment);
        const fields_of writing{remaining, orders};
        std::vector<std::string_view> words{"HSET", key};
        for (const auto& [field, value] : writing.fields) {
            words.push_back(field);
            words.push_back(value);
        }
        connections_.borrow()->command(words);
    }

    std::optional<std::int64_t> units_under(std::size_t segment,
                                            holdfast::fencing_token token) override {
        const auto store = connections_.borrow();
        const auto key = key_of(segment);
        // The token first: a late writer must be refused before the number is read, not after.
        if (guard::redis_fence{store->connected()}.announce(key, token) == guard::admission::stale) {
            return std::nullopt;
        }
        return read_units(*store, key);
    }

    verdict book_under(std::size_t segment, holdfast::fencing_token token, std::int64_t remaining,
                       std::span<const order> orders) override {
        const auto store = connections_.borrow();
        const fields_of writing{remaining, orders};
        guard::redis_fence tokens{store->connected()};
        return tokens.set_fields(key_of(segment), token, writing.fields) == guard::admission::admitted
                   ? verdict::booked
                   : verdict::refused;
    }

    version units_and_sequence(std::size_t segment) override {
        const auto store = connections_.borrow();
        const auto key = key_of(segment);
        const auto sequence = guard::redis_storage_lease{store->connected()}.read(key);
        return {sequence, read_units(*store, key)};
    }

    verdict book_if_unchanged(std::size_t segment, const version& seen, const order& taken) override {
        const auto store = connections_.borrow();
        const fields_of writing{seen.units - 1, {&taken, 1}};
        guard::redis_storage_lease sequence{store->connected()};
        return sequence.write(key_of(segment), seen.sequence, writing.fields) == guard::contest::won
                   ? verdict::booked
                   : verdict::refused;
    }

    once_booking book_once(std::size_t segment, holdfast::fencing_token token, std::int64_t seen,
                           const order& wanted) override {
        using result = once_booking::result;
        const auto store = connections_.borrow();
        // Redis has no transaction that could span the three: a crash between the sale and its record
        // leaves a claim, which ends, and then the request may be sold to again.
        guard::redis_once once{store->connected()};
        const auto claim = once.claim(wanted.request);
        if (claim.result == guard::once_reply::verdict::done) {
            return {result::already_booked, claim.outcome};
        }
        if (claim.result == guard::once_reply::verdict::running) {
            return {result::refused, {}};
        }
        if (seen <= 0) {
            once.abandon(claim.ticket);
            return {result::sold_out, {}};
        }
        const fields_of writing{seen - 1, {&wanted, 1}};
        guard::redis_fence tokens{store->connected()};
        if (tokens.set_fields(key_of(segment), token, writing.fields) == guard::admission::stale) {
            once.abandon(claim.ticket);
            return {result::refused, {}};
        }
        static_cast<void>(once.complete(claim.ticket, wanted.id));
        return {result::booked, wanted.id};
    }

    std::optional<std::int64_t> book_if_any(std::size_t segment, const order& wanted) override {
        const auto key = key_of(segment);
        const auto field = "order:" + wanted.id;
        const std::array<std::string_view, 6> words{"EVAL", take_one, "1", key, field, wanted.request};
        const auto said = connections_.borrow()->command(words);
        if (said->type != REDIS_REPLY_INTEGER || said->integer < 0) {
            return std::nullopt;
        }
        return said->integer;
    }

private:
    pool<redis_link> connections_;
};

}  // namespace

std::unique_ptr<stock> open_redis_stock(const std::string& address, std::size_t connections) {
    return std::make_unique<redis_stock>(address, connections);
}

}  // namespace flash_sale
