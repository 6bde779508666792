// Links with the guards and needs no header of the database's.
#include <holdfast/guard/fence.hpp>
#include <holdfast/guard/mysql.hpp>

int main(int count, char**) {
    st_mysql* none = nullptr;
    holdfast::guard::mysql_database database{none};
    holdfast::guard::fence fence{database};
    return count > 1 && fence.newest("stock").value != 0 ? 1 : 0;
}
