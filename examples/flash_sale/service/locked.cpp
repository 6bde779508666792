// Strategies that look and write while they hold a lock. The stock checks their tokens, so that a
// holder that was stopped for too long does no harm when it wakes up.

#include <holdfast/mutex.hpp>
#include <holdfast/shared_mutex.hpp>

#include "strategy.hpp"

namespace flash_sale {

namespace {

class with_mutex final : public strategy {
public:
    with_mutex(const shop& in, holdfast::client& locks, const std::string& name)
        : shop_{in}, mutex_{locks, name, in.lease} {}

    sale sell(const std::string& request) override {
        const auto held = mutex_.try_acquire_for(shop_.patience);
        return held ? look_then_write_under(shop_, held->token(), request) : sale{};
    }

private:
    shop shop_;
    holdfast::mutex mutex_;
};

/// Buyers look as readers, side by side. Only those who find a unit ask to be the writer. Pays when
/// most buyers come too late.
class with_shared_mutex final : public strategy {
public:
    explicit with_shared_mutex(const shop& in)
        : shop_{in}, mutex_{*in.locks, "inventory001:shared", in.lease} {}

    sale sell(const std::string& request) override {
        {
            const auto reading = mutex_.try_acquire_shared_for(shop_.patience);
            if (!reading) {
                return {};
            }
            if (shop_.goods->units(0) <= 0) {
                return {sale::outcome::sold_out, {}, 0};
            }
        }
        const auto writing = mutex_.try_acquire_for(shop_.patience);
        return writing ? look_then_write_under(shop_, writing->token(), request) : sale{};
    }

private:
    shop shop_;
    holdfast::shared_mutex mutex_;
};

}  // namespace

void add_locked(const shop& with, std::vector<named_strategy>& all) {
    if (with.locks != nullptr) {
        all.push_back({"holdfast", std::make_unique<with_mutex>(with, *with.locks, "inventory001")});
        all.push_back({"shared", std::make_unique<with_shared_mutex>(with)});
    }
    if (with.quorum != nullptr) {
        all.push_back({"redlock", std::make_unique<with_mutex>(with, *with.quorum, "inventory001")});
    }
}

}  // namespace flash_sale
