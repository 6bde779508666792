// Strategies with a lock and a second line of defence at the stock.

#include <holdfast/mutex.hpp>

#include "strategy.hpp"

namespace flash_sale {

namespace {

/// One order for each request, however often it is asked for.
class with_idempotency final : public strategy {
public:
    explicit with_idempotency(const shop& in)
        : shop_{in}, mutex_{*in.locks, "inventory001:once", in.lease} {}

    sale sell(const std::string& request) override {
        const auto held = mutex_.try_acquire_for(shop_.patience);
        if (!held) {
            return {};
        }
        const auto there = shop_.goods->units_under(0, held->token());
        if (!there) {
            return {};
        }
        if (*there > 0) {
            shop_.do_the_work();
        }
        return told(*there,
                    shop_.goods->book_once(0, held->token(), *there, {shop_.numbers->next(), request}));
    }

private:
    [[nodiscard]] static sale told(std::int64_t there, const stock::once_booking& booking) {
        using result = stock::once_booking::result;
        switch (booking.answer) {
            case result::booked:
                return {sale::outcome::sold, booking.order_id, there - 1};
            case result::already_booked:
                return {sale::outcome::sold, booking.order_id, there};
            case result::sold_out:
                return {sale::outcome::sold_out, {}, 0};
            case result::refused:
                break;
        }
        return {};
    }

    shop shop_;
    holdfast::mutex mutex_;
};

/// The lock keeps the crowd in order; the stock's own sequence decides. No token is needed.
class with_sequence final : public strategy {
public:
    explicit with_sequence(const shop& in)
        : shop_{in}, mutex_{*in.locks, "inventory001:lease_seq", in.lease} {}

    sale sell(const std::string& request) override {
        const auto held = mutex_.try_acquire_for(shop_.patience);
        if (!held) {
            return {};
        }
        const auto seen = shop_.goods->units_and_sequence(0);
        if (seen.units <= 0) {
            return {sale::outcome::sold_out, {}, 0};
        }
        shop_.do_the_work();
        const order taken{shop_.numbers->next(), request};
        if (shop_.goods->book_if_unchanged(0, seen, taken) == verdict::refused) {
            return {};
        }
        return {sale::outcome::sold, taken.id, seen.units - 1};
    }

private:
    shop shop_;
    holdfast::mutex mutex_;
};

}  // namespace

void add_guarded(const shop& with, std::vector<named_strategy>& all) {
    if (with.locks != nullptr) {
        all.push_back({"once", std::make_unique<with_idempotency>(with)});
        all.push_back({"lease_seq", std::make_unique<with_sequence>(with)});
    }
}

}  // namespace flash_sale
