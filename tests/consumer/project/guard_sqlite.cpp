// Links with the guards and needs no header of the database's.
#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/sqlite.hpp>

int main(int count, char**) {
    sqlite3* none = nullptr;
    holdfast::guard::sqlite_database database{none};
    holdfast::guard::fence fence{database};
    return count > 1 && fence.newest("stock").value != 0 ? 1 : 0;
}
