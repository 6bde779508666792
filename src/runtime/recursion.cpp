#include <runtime/recursion.hpp>

#include <holdfast/detail/facade.hpp>
#include <runtime/fork_guard.hpp>

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

namespace holdfast::detail {

namespace {

/// Set when this thread ends. Unlike the watch itself it may be looked at afterwards, by destructors of
/// other `thread_local` objects: they are watched over by `after_the_end`.
thread_local bool thread_is_ending = false;

/// Tells the tables that a thread has been inside of that it ends.
class end_of_thread {
public:
    end_of_thread() = default;
    end_of_thread(const end_of_thread&) = delete;
    end_of_thread& operator=(const end_of_thread&) = delete;
    ~end_of_thread() {
        thread_is_ending = true;
        for (const auto& one : tables_) {
            if (const auto table = one.lock()) {
                table->forget_thread(this_thread_number());
            }
        }
    }

    void tell(const std::shared_ptr<recursion_table>& table) {
        const auto same = [&](const auto& one) {
            return !one.owner_before(table) && !table.owner_before(one);
        };
        if (std::none_of(tables_.begin(), tables_.end(), same)) {
            std::erase_if(tables_, [](const auto& one) { return one.expired(); });
            tables_.push_back(table);
        }
    }

private:
    std::vector<std::weak_ptr<recursion_table>> tables_;
};

thread_local end_of_thread at_end;

/// For those who come when `at_end` is gone. The values of keys end after all `thread_local` objects.
/// Not those of the main thread, whose end is that of the process.
[[nodiscard]] end_of_thread& after_the_end() {
    static const ::pthread_key_t key = [] {
        ::pthread_key_t made{};
        const auto tell = [](void* watch) { delete static_cast<end_of_thread*>(watch); };
        if (const int error = ::pthread_key_create(&made, tell); error != 0) {
            throw std::system_error{error, std::generic_category(), "pthread_key_create"};
        }
        return made;
    }();
    auto* watch = static_cast<end_of_thread*>(::pthread_getspecific(key));
    if (watch == nullptr) {
        auto fresh = std::make_unique<end_of_thread>();
        if (const int error = ::pthread_setspecific(key, fresh.get()); error != 0) {
            throw std::system_error{error, std::generic_category(), "pthread_setspecific"};
        }
        watch = fresh.release();
    }
    return *watch;
}

}  // namespace

recursion_table::recursion_table() : generation_{fork_generation()} {}

bool recursion_table::forked() const noexcept {
    return generation_ != fork_generation();
}

recursion_table::entry* recursion_table::shard::find(std::uint64_t thread,
                                                     std::string_view name) noexcept {
    const auto own = threads.find(thread);
    if (own == threads.end()) {
        return nullptr;
    }
    const auto found = std::find_if(own->second.begin(), own->second.end(),
                                    [&](const entry& one) { return one.taken->name() == name; });
    return found == own->second.end() ? nullptr : &*found;
}

void recursion_table::shard::erase(std::uint64_t thread, const entry* gone) noexcept {
    const auto own = threads.find(thread);
    std::erase_if(own->second, [&](const entry& one) { return &one == gone; });
    if (own->second.empty()) {
        threads.erase(own);
    }
}

std::shared_ptr<hold> recursion_table::enter_again(std::string_view name, lock_object level) {
    if (forked()) {
        return nullptr;
    }
    const auto thread = this_thread_number();
    auto& here = shard_of(thread);
    const std::lock_guard lock{here.guard};
    auto* const inside = here.find(thread, name);
    if (inside == nullptr || inside->taken->loss() != errc{}) {
        return nullptr;
    }
    inside->levels.push_back(level);
    return inside->taken;
}

void recursion_table::enter(lock_object level, const std::shared_ptr<hold>& taken) {
    (thread_is_ending ? after_the_end() : at_end).tell(shared_from_this());
    const auto thread = this_thread_number();
    taken->set_reentrant(thread);
    entry made{taken, {level}};
    auto& here = shard_of(thread);
    const std::lock_guard lock{here.guard};
    here.threads[thread].push_back(std::move(made));
}

recursion_table::leaving recursion_table::leave(std::string_view name, lock_object level) noexcept {
    if (forked()) {
        return {true, nullptr};  // the parent's
    }
    const auto thread = this_thread_number();
    auto& here = shard_of(thread);
    const std::lock_guard lock{here.guard};
    auto* const inside = here.find(thread, name);
    if (inside == nullptr) {
        return {};
    }
    auto& levels = inside->levels;
    auto last = std::find(levels.rbegin(), levels.rend(), level);
    if (last == levels.rend()) {
        last = std::find_if(levels.rbegin(), levels.rend(),
                            [](lock_object each) { return each != of_a_lease; });
    }
    if (last == levels.rend()) {
        return {};
    }
    levels.erase(std::prev(last.base()));
    leaving result{true, nullptr};
    if (levels.empty()) {
        result.last = std::move(inside->taken);
        here.erase(thread, inside);
    }
    return result;
}

bool recursion_table::end_lease(const hold& taken) noexcept {
    if (forked()) {
        return false;  // the parent's
    }
    const auto thread = taken.reentrant_thread();
    auto& here = shard_of(thread);
    const std::lock_guard lock{here.guard};
    auto* const inside = here.find(thread, taken.name());
    auto& levels = inside->levels;
    levels.erase(std::find(levels.begin(), levels.end(), of_a_lease));
    if (!levels.empty()) {
        return false;
    }
    here.erase(thread, inside);  // the lease owns the hold, too
    return true;
}

std::uint32_t recursion_table::depth(std::string_view name) const noexcept {
    if (forked()) {
        return 0;
    }
    const auto thread = this_thread_number();
    auto& here = shard_of(thread);
    const std::lock_guard lock{here.guard};
    const auto* const own = here.find(thread, name);
    return own == nullptr ? 0 : static_cast<std::uint32_t>(own->levels.size());
}

std::shared_ptr<hold> recursion_table::hold_of(std::string_view name) const noexcept {
    if (forked()) {
        return nullptr;
    }
    const auto thread = this_thread_number();
    auto& here = shard_of(thread);
    const std::lock_guard lock{here.guard};
    const auto* const own = here.find(thread, name);
    return own == nullptr ? nullptr : own->taken;
}

/// Moves the entries without levels to `over`.
void recursion_table::take_out_ended(std::vector<entry>& entries, std::vector<entry>& over) {
    const auto ended = std::stable_partition(entries.begin(), entries.end(),
                                             [](const entry& one) { return !one.levels.empty(); });
    std::move(ended, entries.end(), std::back_inserter(over));
    entries.erase(ended, entries.end());
}

void recursion_table::forget_object(lock_object gone) noexcept {
    if (forked()) {
        return;
    }
    for (auto& here : shards_) {
        std::vector<entry> over;  // ends after the guard is free again
        const std::lock_guard lock{here.guard};
        for (auto& [thread, entries] : here.threads) {
            for (auto& one : entries) {
                std::erase(one.levels, gone);
            }
            take_out_ended(entries, over);
        }
        std::erase_if(here.threads, [](const auto& each) { return each.second.empty(); });
    }
}

void recursion_table::forget_thread(std::uint64_t gone) noexcept {
    if (forked()) {
        return;
    }
    std::vector<entry> over;  // ends after the guard is free again
    auto& here = shard_of(gone);
    const std::lock_guard lock{here.guard};
    const auto found = here.threads.find(gone);
    if (found == here.threads.end()) {
        return;
    }
    for (auto& one : found->second) {
        std::erase_if(one.levels, [](lock_object level) { return level != of_a_lease; });
    }
    take_out_ended(found->second, over);
    if (found->second.empty()) {
        here.threads.erase(found);
    }
}

}  // namespace holdfast::detail
