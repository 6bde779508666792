#include <redis/errors.hpp>

#include <array>
#include <string>

namespace holdfast::engines::redis {

namespace {

struct meaning {
    std::string_view code;
    errc result;
    /// What to say in place of the server's words, or before them.
    std::string_view words;
};

constexpr std::array meanings{
    meaning{"READONLY", errc::store_unavailable,
            "the server is a replica now; its master must be used"},
    meaning{"LOADING", errc::store_unavailable, "the server is still loading its data"},
    meaning{"MASTERDOWN", errc::store_unavailable, "the server has lost its master"},
    meaning{"CLUSTERDOWN", errc::store_unavailable, "the cluster is down"},
    meaning{"TRYAGAIN", errc::store_unavailable,
            "the slot is being moved to another server; locks are granted again when it is there"},
    meaning{"MOVED", errc::store_unavailable,
            "the slot has moved; is this a cluster? use redis+cluster://"},
    meaning{"ASK", errc::store_unavailable,
            "the slot is being moved; is this a cluster? use redis+cluster://"},
    meaning{"BUSY", errc::store_unavailable,
            "the server is busy with somebody's script; an operator can end it with SCRIPT KILL"},
    meaning{"OOM", errc::store_unavailable,
            "the server has reached its maxmemory; release and renewal still work, new locks do not"},
    meaning{"MISCONF", errc::store_unavailable, "the server refuses writes because it cannot save"},
    meaning{"NOREPLICAS", errc::store_unavailable,
            "the server refuses writes because it has too few replicas"},
    meaning{"NOAUTH", errc::unauthorised, "the server wants a password"},
    meaning{"WRONGPASS", errc::unauthorised, "the server refused user name or password"},
    meaning{"NOPERM", errc::unauthorised, "this user may not do this; docs/redis.md has the ACL line"},
    meaning{"WRONGTYPE", errc::wrong_kind,
            "the name is in use for something that is not this kind of lock"},
    meaning{"WRONGCOUNT", errc::invalid_argument,
            "the owner asked for another number of permits before"},
    meaning{"WRONGKIND", errc::wrong_kind, "the name is in use for another kind of lock"},
};

}  // namespace

failure meaning_of(const value& error) {
    const auto code = error.error_code();
    for (const auto& one : meanings) {
        if (one.code == code) {
            return {one.result, std::string{one.words} + " (" + error.text + ")"};
        }
    }
    return {errc::store_error, "the server answered: " + error.text};
}

failure senseless_answer(std::string_view to) {
    return {errc::store_error, "the server's answer to " + std::string{to} + " makes no sense"};
}

}  // namespace holdfast::engines::redis
