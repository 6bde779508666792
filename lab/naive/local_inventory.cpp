#include "local_inventory.hpp"

namespace naive {

bool local_inventory::sell_one(const hook& after_reading) {
    const std::scoped_lock lock{turn_};
    const int stock = std::stoi(store_.command({"GET", "stock:101"}).text);
    if (stock == 0) {
        return false;
    }
    after_reading();
    store_.command({"SET", "stock:101", std::to_string(stock - 1)});
    return true;
}

}  // namespace naive
