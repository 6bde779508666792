// Opens CONSUMER_STORE, whose engine is linked, or is not. Twice: before main the order of constructors
// matters.
#include <cstdio>
#include <cstdlib>
#include <holdfast/holdfast.hpp>
#include <string>
#include <system_error>

namespace {

std::string attempt() {
    const char* const address = std::getenv("CONSUMER_STORE");
    try {
        holdfast::client client{address == nullptr ? "memory:" : address};
        return "opened";
    } catch (const std::system_error& error) {
        return error.what();
    }
}

const std::string before_main = attempt();

}  // namespace

int main() {
    std::printf("%s\n%s\n", before_main.c_str(), attempt().c_str());
}
