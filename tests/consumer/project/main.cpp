// What somebody else's first program with holdfast looks like.
#include <cstdio>
#include <holdfast/holdfast.hpp>
#include <mutex>
#include <string>

int main(int, char** arguments) {
    holdfast::client client{std::string{"local:"} + arguments[1]};
    holdfast::mutex stock{client, "stock:101"};
    std::scoped_lock guard{stock};
    std::printf("holdfast %s holds %s on %s\n", holdfast::version(), stock.name().c_str(),
                client.store().c_str());
    return stock.token().value > 0 ? 0 : 1;
}
