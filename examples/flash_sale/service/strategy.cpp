#include "strategy.hpp"

#include <unistd.h>

#include <thread>

namespace flash_sale {

std::string_view to_string(sale::outcome result) noexcept {
    switch (result) {
        case sale::outcome::sold:
            return "sold";
        case sale::outcome::sold_out:
            return "sold_out";
        case sale::outcome::try_again:
            break;
    }
    return "try_again";
}

order_numbers::order_numbers(std::uint16_t port) {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    const auto started = std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
    prefix_ =
        std::to_string(port) + "-" + std::to_string(::getpid()) + "-" + std::to_string(started) + "-";
}

std::string order_numbers::next() {
    return prefix_ + std::to_string(++count_);
}

void shop::do_the_work() const {
    if (work.count() > 0) {
        std::this_thread::sleep_for(work);  // not a guess: it stands for a call to another service
    }
}

sale look_then_write(const shop& in, const std::string& request) {
    const auto there = in.goods->units(0);
    if (there <= 0) {
        return {sale::outcome::sold_out, {}, 0};
    }
    in.do_the_work();
    const order taken{in.numbers->next(), request};
    in.goods->book(0, there - 1, {&taken, 1});
    return {sale::outcome::sold, taken.id, there - 1};
}

sale look_then_write_under(const shop& in, holdfast::fencing_token token, const std::string& request) {
    const auto there = in.goods->units_under(0, token);
    if (!there) {
        return {};
    }
    if (*there <= 0) {
        return {sale::outcome::sold_out, {}, 0};
    }
    in.do_the_work();
    const order taken{in.numbers->next(), request};
    if (in.goods->book_under(0, token, *there - 1, {&taken, 1}) == verdict::refused) {
        return {};
    }
    return {sale::outcome::sold, taken.id, *there - 1};
}

std::vector<named_strategy> make_strategies(const shop& with) {
    std::vector<named_strategy> all;
    add_without_distributed_lock(with, all);
    add_locked(with, all);
    add_guarded(with, all);
    add_divided(with, all);
    return all;
}

}  // namespace flash_sale
