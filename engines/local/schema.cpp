#include <chrono>
#include <limits>
#include <local/schema.hpp>
#include <local/transaction.hpp>
#include <thread>

namespace holdfast::engines::local {

namespace {

constexpr const char* boot_file = "/proc/sys/kernel/random/boot_id";

constexpr const char* tables = R"(
CREATE TABLE hold(
    name BLOB NOT NULL, owner BLOB NOT NULL, mode INT NOT NULL, permits INT NOT NULL,
    permit_limit INT NOT NULL, token INT NOT NULL, token_count INT NOT NULL, since INT NOT NULL,
    expires INT NOT NULL, lingering INT NOT NULL, PRIMARY KEY(name, owner)) WITHOUT ROWID;
CREATE TABLE client(
    sequence INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, host BLOB NOT NULL, card_pid INT NOT NULL,
    program BLOB NOT NULL, label BLOB NOT NULL, pid INT NOT NULL, start_time INT NOT NULL,
    pid_namespace INT NOT NULL);
CREATE TABLE revocation(
    sequence INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, owner BLOB NOT NULL, token INT NOT NULL,
    actor BLOB NOT NULL, reason BLOB NOT NULL, at INT NOT NULL);
CREATE TABLE latch(
    name BLOB PRIMARY KEY, count INT NOT NULL, expires INT NOT NULL, line INT NOT NULL,
    openings INT NOT NULL) WITHOUT ROWID;
CREATE TABLE latch_mark(
    sequence INTEGER PRIMARY KEY, request BLOB NOT NULL, name BLOB NOT NULL, UNIQUE(request, name));
CREATE TABLE boot(id BLOB NOT NULL);
)";

std::int64_t wall_microseconds() {
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

bool is_new(database& store) {
    return store.read_number("PRAGMA application_id") == 0 &&
           store.read_number("PRAGMA user_version") == 0 &&
           store.read_number("SELECT count(*) FROM sqlite_schema") == 0;
}

void check_kind(database& store, const std::string& path) {
    if (store.read_number("PRAGMA application_id") != application_id) {
        throw database_error{
            {errc::bad_configuration,
             path + " is another program's database; name another directory, or move it away"}};
    }
    const std::int64_t version = store.read_number("PRAGMA user_version");
    if (version != schema_version) {
        const bool older = version < schema_version;
        throw database_error{
            {errc::bad_configuration,
             path + (older ? " was made by an older" : " was made by a newer") +
                 " holdfast (its format is " + std::to_string(version) + ", ours is " +
                 std::to_string(schema_version) + "); " +
                 (older ? "stop every program that uses it and delete it" : "update this program") +
                 ", or name another directory"}};
    }
}

/// A new store belongs to the boot that it was made in from its first moment: whoever opens it while it
/// is made need not adopt it.
void create_tables(database& store, const time_base& base) {
    transaction change{store};
    // Another process may have been first.
    if (is_new(store)) {
        store.execute(tables);
        statement counter{store, "INSERT INTO hold VALUES(x'', x'', 0, 0, 0, ?1, 0, 0, ?2, 0)"};
        counter.bind(1, wall_microseconds()).bind(2, std::numeric_limits<std::int64_t>::max());
        counter.run();
        statement made_in{store, "INSERT INTO boot VALUES(?1)"};
        made_in.bind(1, base.text()).run();
        store.execute("PRAGMA application_id=" + std::to_string(application_id) +
                      "; PRAGMA user_version=" + std::to_string(schema_version));
    }
    change.commit();
}

std::string recorded_base(database& store) {
    statement query{store, "SELECT id FROM boot"};
    return query.step() ? std::string{query.bytes(0)} : std::string{};
}

/// Times are counted from the host's boot: from before the last one they mean nothing.
void forget_earlier_boots(database& store, const std::string& base) {
    transaction change{store};
    if (recorded_base(store) != base) {
        store.execute("DELETE FROM hold WHERE name <> x''; DELETE FROM client; DELETE FROM latch");
        statement mark{store, "UPDATE boot SET id = ?1"};
        mark.bind(1, base).run();
    }
    change.commit();
}

[[noreturn]] void refuse_other_time(const std::string& path) {
    throw database_error{
        {errc::bad_configuration,
         path + " was used in a time namespace whose clock differs from ours: its holders would look "
                "dead to us. Run all programs that share it in one time namespace, or name another "
                "directory; or stop every program that uses it, and delete it"}};
}

[[noreturn]] void refuse_other_boot(const std::string& path) {
    throw database_error{
        {errc::bad_configuration,
         path + " is in use by programs that see another boot id than ours (" + boot_file +
             "): a container with a boot id of its own, as a rule. Run all of them on the host or in "
             "one container, or name another directory"}};
}

/// A store of an earlier boot is emptied. Nobody who was there then is there now: where others use the
/// store, it is our id or theirs that is wrong. Others who are just opening it, as many jobs do that
/// start together after a boot, are in each other's way for longer on a busy machine.
void adopt(database& store, const std::string& path, const time_base& base, clock::time_point deadline,
           const std::function<company()>& exclude_others) {
    constexpr std::chrono::seconds patience_with_users{1};
    const std::string wanted = base.text();
    const auto began = clock::now();
    for (std::string recorded = recorded_base(store); recorded != wanted;
         recorded = recorded_base(store)) {
        if (recorded.starts_with(base.boot)) {
            refuse_other_time(path);
        }
        const company others = exclude_others();
        if (others == company::none) {
            forget_earlier_boots(store, wanted);
            return;
        }
        const auto now = clock::now();
        if (others == company::users && now - began >= patience_with_users) {
            refuse_other_boot(path);
        }
        if (now >= deadline) {
            throw database_busy{{errc::store_unavailable,
                                 path + ": the store is busy: many programs open it after a boot"}};
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

}  // namespace

void prepare_schema(database& store, const std::string& path, const time_base& base,
                    clock::time_point deadline, const std::function<company()>& exclude_others) {
    // A file that is not ours must not even be switched to another journal.
    const bool fresh = is_new(store);
    if (!fresh) {
        check_kind(store, path);
    } else {
        // Little pages: a grant writes one, and its checksum is most of the work.
        store.execute("PRAGMA page_size=1024");
    }
    configure_connection(store);
    if (fresh) {
        create_tables(store, base);
        check_kind(store, path);
        store.make_room();  // while there is some: where the journal fills the disk, the tables have
                            // theirs
    }
    adopt(store, path, base, deadline, exclude_others);
}

void configure_connection(database& store) {
    // With a limit the journal is emptied when the last connection closes: the next program that opens
    // the store need not read it.
    store.execute(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; "
        "PRAGMA journal_size_limit=4194304");
}

}  // namespace holdfast::engines::local
