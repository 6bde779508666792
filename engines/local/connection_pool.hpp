#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <local/file_guard.hpp>
#include <local/store_connection.hpp>
#include <local/store_files.hpp>
#include <local/wake_map.hpp>
#include <local/write_lock.hpp>

namespace holdfast::engines::local {

/// One connection that writes, since SQLite has one writer at a time: threads of one process queue for
/// it here rather than poll for the file's lock. A few that only read, opened when needed.
///
/// SQLite must not be carried over a fork: a child that opened the same file anew would share the
/// book-keeping of locks that it does not have. So all connections are closed while the process forks,
/// and opened again when they are next needed; `file_guard` keeps the files meanwhile. A fork waits for
/// requests that are running, and for a pool that is being made or destroyed, for some seconds at most.
///
/// Whoever writes, and whoever opens a connection, has the `write_lock`.
///
/// Thread safety: all functions may be called from any thread.
class connection_pool {
    struct slot {
        std::unique_ptr<store_connection> connection;
        bool lent{};
        clock::time_point next_check;
    };

public:
    static constexpr std::size_t most_readers = 3;
    /// How often it is looked whether the files are still those that we opened.
    static constexpr std::chrono::milliseconds between_checks{10};

    /// A connection that is ours until this goes.
    class borrowed {
    public:
        borrowed(connection_pool& owner, slot& from) noexcept : owner_{owner}, slot_{from} {}
        borrowed(const borrowed&) = delete;
        borrowed& operator=(const borrowed&) = delete;
        ~borrowed() { owner_.give_back(slot_); }
        store_connection* operator->() const noexcept { return slot_.connection.get(); }
        store_connection& operator*() const noexcept { return *slot_.connection; }

    private:
        connection_pool& owner_;
        slot& slot_;
    };

    /// Opens the files in `directory`, and prepares them as a store of this time base; `others` tells
    /// who else has them open, and outlives this. Throws `database_error`, also when those others use
    /// other files.
    connection_pool(const std::string& directory, const time_base& base, wake_map& others,
                    clock::time_point deadline, const std::atomic<bool>& stopping);
    connection_pool(const connection_pool&) = delete;
    connection_pool& operator=(const connection_pool&) = delete;
    ~connection_pool();

    /// Both wait until the deadline, for their turn and later for SQLite. Throws `database_error`, also
    /// when the files are not those that we opened any more.
    [[nodiscard]] borrowed writer(clock::time_point deadline);
    [[nodiscard]] borrowed reader(clock::time_point deadline);

    /// Around a fork. The child has no thread that could wait, and what they waited with may be in any
    /// state: it only lets go of the lock, and of the files.
    void rest();
    void resume_in_parent();
    void resume_in_child();

private:
    void prepare(const time_base& base, clock::time_point deadline);
    void take_guards();
    void settle_on_files(const std::function<bool()>& agreed);
    void end() noexcept;
    /// The slot is lent to the caller, and stays so unless this throws.
    void open(slot& place, clock::time_point deadline);
    [[nodiscard]] borrowed lend_writer(clock::time_point deadline, bool while_resting);
    void connect(slot& place, clock::time_point deadline);
    void close_readers() noexcept;
    void close_writer_at_end() noexcept;
    [[nodiscard]] slot* find_free_reader() noexcept;
    void give_back(slot& place) noexcept;

    store_files files_;
    wake_map& others_;
    const std::atomic<bool>& stopping_;
    /// For the thread that has the writer.
    write_lock writes_;
    file_guard::pointer database_guard_;
    file_guard::pointer memory_guard_;
    std::mutex mutex_;
    /// Each for the threads that want such a connection, and for a fork that waits for all of them.
    std::condition_variable writer_back_;
    std::condition_variable reader_back_;
    std::condition_variable all_back_;
    bool resting_{};
    bool ended_{};
    slot writer_;
    std::array<slot, most_readers> readers_;
};

}  // namespace holdfast::engines::local
