// Links with the guards and needs no header of the database's.
#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/postgres.hpp>

int main(int count, char**) {
    pg_conn* none = nullptr;
    holdfast::guard::postgres_database database{none};
    holdfast::guard::fence fence{database};
    return count > 1 && fence.newest("stock").value != 0 ? 1 : 0;
}
