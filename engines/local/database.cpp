#include <cerrno>
#include <local/database.hpp>

#include <sqlite3.h>

namespace holdfast::engines::local {

namespace {

errc code_of(int result, bool stopping) {
    switch (result & 0xFF) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return stopping ? errc::shut_down : errc::store_unavailable;
        case SQLITE_FULL:
        case SQLITE_CANTOPEN:
        case SQLITE_NOMEM:
            return errc::store_unavailable;
        case SQLITE_IOERR:
            if (result == SQLITE_IOERR_SHMOPEN || result == SQLITE_IOERR_SHMSIZE ||
                result == SQLITE_IOERR_SHMMAP) {
                return errc::store_unavailable;  // before anything was written
            }
            if (result == SQLITE_IOERR_SHORT_READ) {
                return errc::store_error;  // so is this: a file was cut short
            }
            // It may have been the last write of a commit.
            return errc::outcome_unknown;
        case SQLITE_PERM:
        case SQLITE_READONLY:
        case SQLITE_AUTH:
            return errc::unauthorised;
        default:
            return errc::store_error;
    }
}

std::string advice(int result, const std::string& path) {
    switch (result == SQLITE_IOERR_SHORT_READ ? SQLITE_CORRUPT : result & 0xFF) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return "the store is busy: another process keeps it locked";
        case SQLITE_FULL:
            return "the disk is full, or `ulimit -f` is reached; make room";
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return "the store is damaged, or not a store of holdfast's; stop every program that uses "
                   "it "
                   "first, then delete " +
                   path + ", " + path + "-wal and " + path +
                   "-shm (all locks in it are free then: never while one of them may be held)";
        default:
            return "the store cannot be used";
    }
}

int wait_for_lock(void* wait, int attempt) {
    return static_cast<lock_wait*>(wait)->before_attempt(attempt) ? 1 : 0;
}

}  // namespace

database::database(const std::string& path, opening mode, clock::time_point deadline,
                   const std::atomic<bool>& stopping)
    : path_{path}, wait_{deadline, stopping} {
    const int flags = SQLITE_OPEN_READWRITE | (mode == opening::existing ? 0 : SQLITE_OPEN_CREATE) |
                      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW |
                      SQLITE_OPEN_EXRESCODE;
    const int result = ::sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr);
    if (result != SQLITE_OK) {
        const std::string reason =
            handle_ != nullptr ? ::sqlite3_errmsg(handle_) : ::sqlite3_errstr(result);
        ::sqlite3_close_v2(handle_);
        throw database_error{
            {code_of(result, false), path + ": " + advice(result, path) + " (" + reason + ")"}};
    }
    ::sqlite3_busy_handler(handle_, &wait_for_lock, &wait_);
    int keep = 1;
    ::sqlite3_file_control(handle_, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
}

database::~database() {
    ::sqlite3_close_v2(handle_);
}

void database::execute(const std::string& sql) {
    const int result = ::sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
    if (result != SQLITE_OK) {
        fail(result);
    }
}

std::int64_t database::read_number(const std::string& sql) {
    statement query{*this, sql};
    return query.step() ? query.number(0) : 0;
}

void database::rollback() noexcept {
    if (!in_transaction()) {
        return;
    }
    try {
        rollback_.run();
    } catch (const database_error&) {
        // SQLite has undone it by itself, or will when the file is next opened.
    }
}

int database::changes() const noexcept {
    return ::sqlite3_changes(handle_);
}

std::int64_t database::last_row_id() const noexcept {
    return ::sqlite3_last_insert_rowid(handle_);
}

void database::end_without_checkpoint() noexcept {
    ::sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

bool database::in_transaction() const noexcept {
    return ::sqlite3_get_autocommit(handle_) == 0;
}

void database::fail(int result) const {
    if ((result & 0xFF) == SQLITE_IOERR && ::sqlite3_system_errno(handle_) == EFBIG) {
        result = SQLITE_FULL;  // SQLite knows a full disk, but not `ulimit -f`
    }
    failure reason{code_of(result, wait_.stopping()),
                   path_ + ": " + advice(result, path_) + " (" + ::sqlite3_errmsg(handle_) + ")"};
    if ((result & 0xFF) == SQLITE_BUSY || (result & 0xFF) == SQLITE_LOCKED) {
        throw database_busy{std::move(reason)};
    }
    if ((result & 0xFF) == SQLITE_FULL) {
        throw database_full{std::move(reason)};
    }
    throw database_error{std::move(reason)};
}

statement::~statement() {
    ::sqlite3_finalize(handle_);
}

void statement::prepare() {
    if (handle_ != nullptr) {
        return;
    }
    const int result =
        ::sqlite3_prepare_v3(database_.handle(), sql_.data(), static_cast<int>(sql_.size()),
                             SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
    if (result != SQLITE_OK) {
        database_.fail(result);
    }
}

statement& statement::bind(int place, std::int64_t value) {
    prepare();
    ::sqlite3_bind_int64(handle_, place, value);
    return *this;
}

statement& statement::bind(int place, std::string_view bytes) {
    prepare();
    // A null pointer would bind NULL, not the empty blob.
    ::sqlite3_bind_blob64(handle_, place, bytes.empty() ? "" : bytes.data(), bytes.size(),
                          SQLITE_STATIC);
    return *this;
}

bool statement::step() {
    prepare();
    const int result = ::sqlite3_step(handle_);
    if (result != SQLITE_ROW && result != SQLITE_DONE) {
        reset();
        database_.fail(result);
    }
    return result == SQLITE_ROW;
}

void statement::run() {
    while (step()) {
    }
    reset();
}

void statement::reset() noexcept {
    ::sqlite3_reset(handle_);
}

std::int64_t statement::number(int column) const noexcept {
    return ::sqlite3_column_int64(handle_, column);
}

std::string_view statement::bytes(int column) const noexcept {
    const void* data = ::sqlite3_column_blob(handle_, column);
    const int length = ::sqlite3_column_bytes(handle_, column);
    return data == nullptr
               ? std::string_view{}
               : std::string_view{static_cast<const char*>(data), static_cast<std::size_t>(length)};
}

bool statement::is_null(int column) const noexcept {
    return ::sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

}  // namespace holdfast::engines::local
