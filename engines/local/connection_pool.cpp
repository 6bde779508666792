#include <algorithm>
#include <local/connection_pool.hpp>
#include <local/schema.hpp>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>

namespace holdfast::engines::local {

namespace {

constexpr std::chrono::seconds fork_patience{5};
constexpr std::chrono::milliseconds closing_patience{50};
/// For other processes that are just opening the store or leaving it.
constexpr std::chrono::milliseconds settling_patience{500};

[[noreturn]] void fail_late(const std::string& path) {
    throw database_error{
        {errc::store_unavailable, path + ": the store is busy with other requests of this process"}};
}

/// All pools of this process, so that a fork finds them.
class pool_registry {
public:
    static pool_registry& instance() {
        // Never destroyed: forks happen during static destruction, too.
        static auto& registry = *new pool_registry;
        return registry;
    }

    void add(connection_pool& pool) {
        const std::lock_guard lock{mutex_};
        pools_.push_back(&pool);
    }
    void remove(connection_pool& pool) {
        const std::lock_guard lock{mutex_};
        std::erase(pools_, &pool);
    }

private:
    pool_registry() {
        // Whoever prepares first is called last: a pool that is being made may need a guard.
        file_guard::prepare_for_forks();
        ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    }

    static void before_fork() {
        instance().mutex_.lock();
        for (connection_pool* pool : instance().pools_) {
            pool->rest();
        }
    }
    static void after_fork_in_parent() {
        for (connection_pool* pool : instance().pools_) {
            pool->resume_in_parent();
        }
        instance().mutex_.unlock();
    }
    static void after_fork_in_child() {
        for (connection_pool* pool : instance().pools_) {
            pool->resume_in_child();
        }
        // The parent's pools are of no use here, nor may they be touched at the next fork.
        instance().pools_.clear();
        instance().mutex_.unlock();
    }

    std::mutex mutex_;
    std::vector<connection_pool*> pools_;
};

}  // namespace

connection_pool::connection_pool(const std::string& directory, const time_base& base, wake_map& others,
                                 clock::time_point deadline, const std::atomic<bool>& stopping)
    : files_{directory}, others_{others}, stopping_{stopping}, writes_{directory + "/wake", stopping} {
    // A fork waits until it is prepared: the child would inherit SQLite's locks, and that on the file.
    writer_.lent = true;
    pool_registry::instance().add(*this);
    try {
        // Before SQLite puts new files in place of those that others have open.
        settle_on_files([this] {
            const std::uint64_t theirs = others_.files();
            return theirs == 0 || theirs == files_.present_mark();
        });
        prepare(base, deadline);
    } catch (...) {
        end();
        throw;
    }
    give_back(writer_);
}

connection_pool::~connection_pool() {
    end();
}

/// A fork in the middle waits for it; afterwards there is nothing that it could disturb.
void connection_pool::end() noexcept {
    {
        const std::lock_guard lock{mutex_};
        close_readers();
        close_writer_at_end();
        file_guard::close(memory_guard_);
        file_guard::close(database_guard_);
        ended_ = true;
        all_back_.notify_all();
    }
    pool_registry::instance().remove(*this);
}

void connection_pool::prepare(const time_base& base, clock::time_point deadline) {
    take_guards();
    writer_.connection = std::make_unique<store_connection>(
        files_, database::opening::create_if_missing, deadline, stopping_);
    database& store = writer_.connection->raw();
    writes_.lock(deadline);
    static_cast<void>(store.read_number("PRAGMA schema_version"));  // opens all files
    writes_.unlock();
    // Both: others may have opened the store before somebody deleted `wake`.
    const auto exclude_others = [&] {
        take_guards();
        if (memory_guard_ && memory_guard_->others_have_it()) {
            return company::users;
        }
        if (memory_guard_ && others_.exclude_others()) {
            return company::none;
        }
        // Whoever uses the store has said with which files.
        return others_.files() == 0 ? company::newcomers : company::users;
    };
    bool made_room = false;
    // SQLite does not wait for every lock it needs to turn a new file into a store.
    for (bool prepared = false; !prepared;) {
        try {
            prepare_schema(store, files_.database(), base, deadline, exclude_others);
            prepared = true;
        } catch (const database_full&) {
            if (std::exchange(made_room, true)) {
                throw;
            }
            store.make_room();
        } catch (const database_busy&) {
            if (clock::now() >= deadline) {
                throw;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
    }
    take_guards();
    file_guard::lock(database_guard_);
    file_guard::lock(memory_guard_);
    files_.remember();
    settle_on_files([this] { return others_.agree_on_files(files_.mark()); });
}

void connection_pool::take_guards() {
    database_guard_ = file_guard::of(files_.database(), file_guard::part::database);
    memory_guard_ = file_guard::of(files_.database() + "-shm", file_guard::part::shared_memory);
}

/// What others said of their files means nothing when they have left: a program that is not ours may
/// have deleted the journal since.
void connection_pool::settle_on_files(const std::function<bool()>& agreed) {
    const auto deadline = clock::now() + settling_patience;
    while (!agreed()) {
        if (clock::now() >= deadline) {
            files_.fail_others_differ();
        }
        if (others_.exclude_others()) {
            others_.forget_files();
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }
    others_.let_others_in();
    // Again: for a moment another may have been alone.
    if (!agreed()) {
        files_.fail_others_differ();
    }
}

connection_pool::borrowed connection_pool::writer(clock::time_point deadline) {
    return lend_writer(deadline, false);
}

connection_pool::borrowed connection_pool::lend_writer(clock::time_point deadline, bool while_resting) {
    {
        std::unique_lock lock{mutex_};
        const auto free = [&] { return !writer_.lent && (!resting_ || while_resting); };
        if (!writer_back_.wait_until(lock, deadline, free)) {
            fail_late(files_.database());
        }
        writer_.lent = true;
    }
    open(writer_, deadline);
    return {*this, writer_};
}

connection_pool::borrowed connection_pool::reader(clock::time_point deadline) {
    slot* place = nullptr;
    {
        std::unique_lock lock{mutex_};
        const auto find = [&] { return !resting_ && (place = find_free_reader()) != nullptr; };
        if (!reader_back_.wait_until(lock, deadline, find)) {
            fail_late(files_.database());
        }
        place->lent = true;
    }
    open(*place, deadline);
    return {*this, *place};
}

/// One that is open, if there is one.
connection_pool::slot* connection_pool::find_free_reader() noexcept {
    slot* found = nullptr;
    for (slot& each : readers_) {
        if (!each.lent && (found == nullptr || !found->connection)) {
            found = &each;
        }
    }
    return found;
}

void connection_pool::open(slot& place, clock::time_point deadline) {
    try {
        if (&place == &writer_) {
            writes_.lock(deadline);
            connect(place, deadline);
        } else if (!place.connection) {
            // A fork waits for us already.
            const borrowed exclusive = lend_writer(deadline, true);
            connect(place, deadline);
        }
        // Four system calls: not for every request. They cannot be in time for all of them anyway.
        if (const auto now = clock::now(); now >= place.next_check) {
            files_.check();
            place.next_check = now + between_checks;
        }
        place.connection->raw().wait_until(deadline);
    } catch (...) {
        give_back(place);
        throw;
    }
}

void connection_pool::connect(slot& place, clock::time_point deadline) {
    if (place.connection) {
        return;
    }
    files_.check();
    auto fresh =
        std::make_unique<store_connection>(files_, database::opening::existing, deadline, stopping_);
    configure_connection(fresh->raw());
    place.connection = std::move(fresh);
    place.next_check = {};
}

void connection_pool::give_back(slot& place) noexcept {
    bool resting = false;
    if (&place == &writer_) {
        writes_.unlock();
    }
    {
        const std::lock_guard lock{mutex_};
        place.lent = false;
        resting = resting_;
    }
    if (resting) {
        // Only one of the threads that wait for the writer may have it then.
        writer_back_.notify_all();
        all_back_.notify_all();
        return;
    }
    // One connection serves one waiting thread; more would only find that it has gone again.
    (&place == &writer_ ? writer_back_ : reader_back_).notify_one();
}

void connection_pool::rest() {
    std::unique_lock lock{mutex_};
    resting_ = true;
    const auto all_back = [this] {
        const bool lent = writer_.lent || std::any_of(readers_.begin(), readers_.end(),
                                                      [](const slot& each) { return each.lent; });
        return ended_ || !lent;
    };
    if (all_back_.wait_until(lock, clock::now() + fork_patience, all_back)) {
        close_readers();
        if (writer_.connection) {
            writer_.connection->raw().end_without_checkpoint();
            writer_.connection.reset();
        }
        writes_.close();
    }
    // Held until after the fork, so that the child does not inherit it in another thread's hands.
    lock.release();
}

void connection_pool::close_readers() noexcept {
    for (slot& each : readers_) {
        if (each.connection) {
            each.connection->raw().end_without_checkpoint();
            each.connection.reset();
        }
    }
}

/// The last connection of all empties the journal, if it may.
void connection_pool::close_writer_at_end() noexcept {
    if (!writer_.connection) {
        return;
    }
    try {
        writes_.lock(clock::now() + closing_patience);
        file_guard::unlock(database_guard_);
    } catch (const database_error&) {
        writer_.connection->raw().end_without_checkpoint();
    }
    writer_.connection.reset();
    writes_.unlock();  // a child of an earlier fork may have the file open, too
    writes_.close();
}

void connection_pool::resume_in_parent() {
    resting_ = false;
    mutex_.unlock();
    writer_back_.notify_all();
    reader_back_.notify_all();
}

void connection_pool::resume_in_child() {
    resting_ = false;
    mutex_.unlock();
    writes_.close();
    others_.close();
}

}  // namespace holdfast::engines::local
