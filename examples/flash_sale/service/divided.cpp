// Strategies with shorter queues: several locks for one stock, or several orders under one lock.

#include <algorithm>
#include <system_error>

#include <holdfast/keyed_executor.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/segmented_stock.hpp>

#include "strategy.hpp"

namespace flash_sale {

namespace {

/// The order that this thread is about to book: `segmented_stock` calls back on the thread that takes.
thread_local const order* in_hand = nullptr;
thread_local std::int64_t left_in_segment = 0;

struct holding_an_order {
    explicit holding_an_order(const order& wanted) { in_hand = &wanted; }
    holding_an_order(const holding_an_order&) = delete;
    holding_an_order& operator=(const holding_an_order&) = delete;
    ~holding_an_order() { in_hand = nullptr; }
};

class with_segments final : public strategy {
public:
    explicit with_segments(const shop& in)
        : shop_{in},
          stock_{*in.locks,
                 "inventory001:segment",
                 in.segments,
                 {[this](const holdfast::segment& of) { return read(of); },
                  [this](const holdfast::segment& of, std::uint64_t units) { write(of, units); }},
                 {.lease = in.lease}} {}

    sale sell(const std::string& request) override {
        const order wanted{shop_.numbers->next(), request};
        const holding_an_order during{wanted};
        const auto got = stock_.take_for(1, shop_.patience);
        switch (got.what) {
            case holdfast::taking::outcome::taken:
                return {sale::outcome::sold, wanted.id, left_in_segment};
            case holdfast::taking::outcome::not_enough:
                return {sale::outcome::sold_out, {}, 0};
            case holdfast::taking::outcome::gave_up:
                break;
        }
        return {};
    }

private:
    [[noreturn]] static void late() {
        throw std::system_error{make_error_code(holdfast::errc::lost),
                                "the stock has seen a later holder"};
    }
    [[nodiscard]] std::uint64_t read(const holdfast::segment& of) {
        const auto there = shop_.goods->units_under(of.index, of.token);
        if (!there) {
            late();
        }
        return static_cast<std::uint64_t>(std::max<std::int64_t>(*there, 0));
    }
    void write(const holdfast::segment& of, std::uint64_t units) {
        shop_.do_the_work();
        left_in_segment = static_cast<std::int64_t>(units);
        if (shop_.goods->book_under(of.index, of.token, left_in_segment, {in_hand, 1}) ==
            verdict::refused) {
            late();
        }
    }

    shop shop_;
    holdfast::segmented_stock stock_;
};

/// All buyers who wait in this process are served together: one lock, one look, one piece of work, one
/// commit.
class with_batches final : public strategy {
public:
    explicit with_batches(const shop& in)
        : shop_{in},
          mutex_{*in.locks, "inventory001:batch", in.lease},
          buyers_{{.threads = 1}, most_at_once, [this](const std::string&, std::span<std::string> all) {
                      return sell_all(all);
                  }} {}

    sale sell(const std::string& request) override {
        return buyers_.submit("inventory001", request).get();
    }

private:
    static constexpr std::size_t most_at_once = 64;

    [[nodiscard]] std::vector<sale> sell_all(std::span<std::string> requests) {
        std::vector<sale> sales(requests.size());
        const auto held = mutex_.try_acquire_for(shop_.patience);
        if (!held) {
            return sales;
        }
        const auto there = shop_.goods->units_under(0, held->token());
        if (!there) {
            return sales;
        }
        const auto lucky =
            std::min(requests.size(), static_cast<std::size_t>(std::max<std::int64_t>(*there, 0)));
        if (lucky > 0 &&
            book(held->token(), *there, requests.first(lucky), sales) == verdict::refused) {
            return sales;
        }
        for (auto index = lucky; index < sales.size(); ++index) {
            sales[index] = {sale::outcome::sold_out, {}, 0};
        }
        return sales;
    }

    [[nodiscard]] verdict book(holdfast::fencing_token token, std::int64_t there,
                               std::span<std::string> requests, std::vector<sale>& sales) {
        shop_.do_the_work();
        std::vector<order> orders;
        orders.reserve(requests.size());
        for (const auto& request : requests) {
            orders.push_back({shop_.numbers->next(), request});
        }
        const auto remaining = there - static_cast<std::int64_t>(orders.size());
        if (shop_.goods->book_under(0, token, remaining, orders) == verdict::refused) {
            return verdict::refused;
        }
        for (std::size_t index = 0; index < orders.size(); ++index) {
            const auto after = there - static_cast<std::int64_t>(index) - 1;
            sales[index] = {sale::outcome::sold, orders[index].id, after};
        }
        return verdict::booked;
    }

    shop shop_;
    holdfast::mutex mutex_;
    holdfast::keyed_batcher<std::string, sale> buyers_;
};

}  // namespace

void add_divided(const shop& with, std::vector<named_strategy>& all) {
    if (with.locks != nullptr) {
        all.push_back({"segmented", std::make_unique<with_segments>(with)});
        all.push_back({"batched", std::make_unique<with_batches>(with)});
    }
}

}  // namespace flash_sale
