#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <local/process.hpp>

namespace holdfast::engines::local {

/// Memory that all processes of a store share, through which those who free a name wake those who wait
/// for it.
///
///     who waits                               who frees
///     add_waiter(name)                        commits to the database
///     looks at the database: still taken      announce(name): raises the name's sequence, and only if
///     sleeps until word() changes, then       somebody waits for it, word() and wakes the sleepers
///     compares the name's sequence
///
/// Both steps on either side are in one total order, so at least one side sees the other.
///
/// The memory is only a help: whatever stands in it (another program may write to the file), nobody
/// crashes or gets a lock by it. Who sleeps is then woken late.
///
/// A process that is killed leaves its entries behind. They cost a system call per release, until
/// `forget_dead_waiters` finds them.
///
/// Thread safety: all functions may be called from any thread.
class wake_map {
public:
    /// Maps the file, creating it if needed. Whoever has it first keeps others out until
    /// `let_others_in`. Throws `std::system_error` with an `errc`.
    wake_map(const std::string& path, const process_ref& self);
    wake_map(const wake_map&) = delete;
    wake_map& operator=(const wake_map&) = delete;
    ~wake_map();

    /// Tries to be the only process that has the store open, until `let_others_in`. When it fails, no
    /// process knows that we have it open: to be tried again, or followed by `let_others_in`.
    [[nodiscard]] bool exclude_others() noexcept;
    /// Throws `std::system_error` with an `errc`.
    void let_others_in();

    /// Identifies the files of the processes that have the store open; 0 while it is not known.
    [[nodiscard]] std::uint64_t files() const noexcept;
    /// Says it if nobody has. False if others use other files.
    [[nodiscard]] bool agree_on_files(std::uint64_t mark) noexcept;
    /// Only while all others are excluded.
    void forget_files() noexcept;
    /// For a forked child, which does not count as one that has the store open. Nobody is woken
    /// through this any more.
    void close() noexcept;

    /// What stands for a name here. Different names may share one; that costs a needless wake-up.
    [[nodiscard]] static std::uint64_t key_of(std::string_view name) noexcept;

    /// Where the waiter was entered; `remove_waiter` wants it back.
    [[nodiscard]] std::size_t add_waiter(std::uint64_t key) noexcept;
    void remove_waiter(std::size_t place) noexcept;
    [[nodiscard]] std::uint32_t count_waiters(std::uint64_t key) const noexcept;
    /// Those of other engines than this.
    [[nodiscard]] std::uint32_t count_other_waiters(std::uint64_t key) const noexcept;
    void forget_dead_waiters() noexcept;

    [[nodiscard]] std::uint32_t sequence(std::uint64_t key) const noexcept;
    void announce(std::uint64_t key) noexcept;
    [[nodiscard]] std::uint32_t revocations() const noexcept;
    void announce_revocation() noexcept;

    [[nodiscard]] std::uint32_t word() const noexcept;
    /// Sleeps while the word is `seen`.
    void sleep(std::uint32_t seen) const noexcept;
    void wake_sleepers() noexcept;

private:
    struct layout;

    /// False when the file was cut short, and cannot be made longer: then the memory must not be
    /// touched.
    [[nodiscard]] bool reachable() const noexcept;
    [[nodiscard]] std::size_t used_places() const noexcept;
    [[nodiscard]] std::uint32_t count(std::uint64_t key) const noexcept;
    void clear() noexcept;
    [[nodiscard]] std::optional<process_ref> process_at(std::size_t place,
                                                        std::uint64_t key) const noexcept;
    [[nodiscard]] bool anybody_waits(std::uint64_t key) const noexcept;

    const std::string path_;
    const process_ref self_;
    const std::uint64_t engine_;
    int file_{-1};
    layout* map_{};
};

}  // namespace holdfast::engines::local
