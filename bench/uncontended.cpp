#include "bare_sqlite.hpp"
#include "measure.hpp"

#include <holdfast/holdfast.hpp>

namespace bench {

std::vector<figure> uncontended() {
    constexpr std::size_t operations = 500;
    const temporary_directory directory;
    holdfast::client client{"local:" + (directory.path() / "store").string()};
    holdfast::mutex mutex{client, "bench"};
    bare_sqlite bare{directory.path() / "bare.db"};
    const auto result = compare(
        61, operations,
        [&] {
            for (std::size_t i = 0; i < operations; ++i) {
                mutex.lock();
                mutex.unlock();
            }
        },
        [&] {
            for (std::size_t i = 0; i < operations; ++i) {
                bare.immediate_transaction();
                bare.immediate_transaction();
            }
        });
    return {{"local: lock + unlock, uncontended, against two bare SQLite transactions",
             microseconds(result.ours) + " : " + microseconds(result.theirs) + " = " +
                 text(result.ratio(), 2) + " ×",
             "≤ 1.5 ×", result.ratio() <= 1.5}};
}

}  // namespace bench
