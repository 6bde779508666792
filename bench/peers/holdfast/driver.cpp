// holdfast's mutex, as README.md shows it. See ../README.md for the protocol.

#include <common/orders.hpp>

#include <memory>
#include <string>

#include <holdfast/holdfast.hpp>

int main(int, char** arguments) {
    holdfast::client client{std::string{"redis://127.0.0.1:"} + arguments[1]};
    peers::answer_orders("holdfast " + std::string{holdfast::version()}, [&](const peers::order& next) {
        return peers::run_threads(next, [&](std::int64_t task) {
            return std::make_unique<holdfast::mutex>(client, next.name(task));
        });
    });
}
