#pragma once

#include <local/database.hpp>

namespace holdfast::engines::local {

/// Undone unless committed.
class transaction {
public:
    explicit transaction(database& store) : store_{store} { store_.begin(); }
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction() { store_.rollback(); }

    void commit() { store_.commit(); }

private:
    database& store_;
};

}  // namespace holdfast::engines::local
