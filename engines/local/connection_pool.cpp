#include <algorithm>
#include <local/connection_pool.hpp>
#include <local/schema.hpp>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/stat.h>

namespace holdfast::engines::local {

namespace {

constexpr std::chrono::seconds fork_patience{5};

[[noreturn]] void fail_late(const std::string& path) {
    throw database_error{
        {errc::store_unavailable, path + ": the store is busy with other requests of this process"}};
}

std::pair<std::uint64_t, std::uint64_t> identity_of(const std::string& path) {
    struct ::stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        return {};
    }
    return {status.st_dev, status.st_ino};
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
    pool_registry() { ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

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

connection_pool::connection_pool(std::string path, const time_base& base, wake_map& others,
                                 clock::time_point deadline, const std::atomic<bool>& stopping)
    : path_{std::move(path)}, stopping_{stopping} {
    writer_.connection = std::make_unique<store_connection>(path_, database::opening::create_if_missing,
                                                            deadline, stopping_);
    // SQLite does not wait for every lock it needs to turn a new file into a store.
    for (bool prepared = false; !prepared;) {
        try {
            prepare_schema(writer_.connection->raw(), path_, base,
                           [&] { return others.exclude_others(); });
            prepared = true;
        } catch (const database_error& error) {
            if (error.reason().code != errc::store_unavailable || clock::now() >= deadline) {
                throw;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
    }
    others.let_others_in();
    file_ = identity_of(path_);
    pool_registry::instance().add(*this);
}

connection_pool::~connection_pool() {
    pool_registry::instance().remove(*this);
}

connection_pool::borrowed connection_pool::writer(clock::time_point deadline) {
    std::unique_lock lock{mutex_};
    if (!writer_back_.wait_until(lock, deadline, [this] { return !writer_.lent && !resting_; })) {
        fail_late(path_);
    }
    open(writer_, deadline);
    writer_.lent = true;
    return {*this, writer_};
}

connection_pool::borrowed connection_pool::reader(clock::time_point deadline) {
    std::unique_lock lock{mutex_};
    slot* place = nullptr;
    const auto find = [&] { return !resting_ && (place = find_free_reader()) != nullptr; };
    if (!reader_back_.wait_until(lock, deadline, find)) {
        fail_late(path_);
    }
    open(*place, deadline);
    place->lent = true;
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
    if (!place.connection) {
        if (identity_of(path_) != file_) {
            store_connection::fail_moved(path_);
        }
        auto fresh =
            std::make_unique<store_connection>(path_, database::opening::existing, deadline, stopping_);
        configure_connection(fresh->raw());
        place.connection = std::move(fresh);
    }
    place.connection->raw().wait_until(deadline);
}

void connection_pool::give_back(slot& place) noexcept {
    bool resting = false;
    {
        const std::lock_guard lock{mutex_};
        place.lent = false;
        resting = resting_;
    }
    // One connection is for one of those who wait; more would only find that it has gone again.
    (&place == &writer_ ? writer_back_ : reader_back_).notify_one();
    if (resting) {
        all_back_.notify_all();
    }
}

void connection_pool::rest() {
    std::unique_lock lock{mutex_};
    resting_ = true;
    const auto all_back = [this] {
        return !writer_.lent && std::none_of(readers_.begin(), readers_.end(),
                                             [](const slot& each) { return each.lent; });
    };
    if (all_back_.wait_until(lock, clock::now() + fork_patience, all_back)) {
        writer_.connection.reset();
        for (slot& each : readers_) {
            each.connection.reset();
        }
    }
    // Held until after the fork, so that the child does not inherit it in another thread's hands.
    lock.release();
}

void connection_pool::resume_in_parent() {
    resume_in_child();
    writer_back_.notify_all();
    reader_back_.notify_all();
}

void connection_pool::resume_in_child() {
    resting_ = false;
    mutex_.unlock();
}

}  // namespace holdfast::engines::local
