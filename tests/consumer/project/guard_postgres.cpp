// Links with the guards and needs no header of the database's: a connection that is none is refused.
#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/postgres.hpp>

#include <system_error>

int main() {
    pg_conn* none = nullptr;
    try {
        holdfast::guard::postgres_database database{none};
        holdfast::guard::fence fence{database};
        return fence.newest("stock").value == 0 ? 2 : 3;
    } catch (const std::system_error& refused) {
        return refused.code() == std::errc::invalid_argument ? 0 : 1;
    }
}
