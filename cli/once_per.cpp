#include "once_per.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>

#include "exit_code.hpp"

namespace holdfast::cli {

using std::chrono::milliseconds;

namespace {

constexpr std::string_view suffix = ":once-per";
constexpr std::size_t longest_name = 1024;
/// `~` and sixteen digits.
constexpr std::size_t hash_length = 17;

/// FNV-1a. The same on every host, unlike std::hash.
[[nodiscard]] std::uint64_t hash(std::string_view text) noexcept {
    std::uint64_t value = 0xcbf29ce484222325U;
    for (const char byte : text) {
        value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    return value;
}

/// The first `length` bytes at most, without half a character at the end.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t length) noexcept {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) {
        --length;
    }
    return text.substr(0, length);
}

/// A lock that somebody holds is nobody's earlier run.
[[nodiscard]] std::optional<holder_info> find_marker(client& store, const std::string& marker,
                                                     std::optional<milliseconds> timeout = {}) {
    auto lock = store.inspect(marker, timeout);
    const auto found = std::find_if(lock.holders.begin(), lock.holders.end(),
                                    [](const holder_info& holder) { return holder.lingering; });
    if (found == lock.holders.end()) {
        return std::nullopt;
    }
    return std::move(*found);
}

/// A run may die, or be refused something, before its marker is complete. Then it leaves a lock that
/// keeps no command from running, and that ends soon to make room for the next marker.
constexpr std::chrono::seconds marker_ttl{2};

[[nodiscard]] lease_options terms_of_marker() {
    lease_options terms;
    terms.ttl = marker_ttl;
    terms.release_timeout = std::chrono::seconds{1};
    return terms;
}

}  // namespace

std::string once_per_marker(std::string_view name) {
    if (name.size() + suffix.size() <= longest_name) {
        return fmt::format("{}{}", name, suffix);
    }
    return fmt::format("{}{}~{:016x}", cut(name, longest_name - suffix.size() - hash_length), suffix,
                       hash(name));
}

bool is_once_per_marker(std::string_view name) noexcept {
    const auto end = name.rfind(suffix);
    const auto rest = end == std::string_view::npos ? name : name.substr(end + suffix.size());
    return end != std::string_view::npos &&
           (rest.empty() || (rest.size() == hash_length && rest[0] == '~'));
}

earlier_run find_earlier_run(client& store, const std::string& name) {
    if (is_once_per_marker(name)) {
        return {};
    }
    const auto marker = once_per_marker(name);
    try {
        return {find_marker(store, marker), {}};
    } catch (const std::system_error& error) {
        if (error.code() == errc::unauthorised) {
            return {std::nullopt, "no permission for the key " + marker};
        }
        return {std::nullopt, error.what()};
    }
}

// A tenth less than the period: schedulers on several hosts are never on time to the second, and a run
// that comes a little early must not be skipped.
once_per::once_per(client& store, const std::string& name, milliseconds period)
    : store_{store}, marker_{once_per_marker(name)}, blocked_for_{period - period / 10} {}

std::optional<holder_info> once_per::marker(std::optional<milliseconds> timeout) {
    return find_marker(store_, marker_, timeout);
}

milliseconds once_per::rest(clock::time_point started) const {
    return std::chrono::ceil<milliseconds>(started + blocked_for_ - clock::now());
}

bool once_per::counts(clock::time_point started) const {
    return rest(started) > milliseconds{0};
}

failure once_per::remember(clock::time_point started, patience waits) {
    try {
        mutex lock{store_, marker_, terms_of_marker()};
        auto held = take_marker(lock, waits);
        if (!held) {
            return {errc::busy, fmt::format("somebody holds a lock named \"{}\"", marker_)};
        }
        const auto kept_for = std::max(rest(started), milliseconds{1});
        return held->release_after(kept_for) == release_outcome::released
                   ? failure{}
                   : failure{errc::outcome_unknown, {}};
    } catch (const std::system_error& error) {
        return failure_behind(error);
    }
}

/// Takes the lock that becomes the marker, from an earlier run's marker if need be (`--again`). Waits
/// for a marker that was left incomplete, and for a slot that moves to another server.
std::optional<lease> once_per::take_marker(mutex& lock, patience waits) {
    try {
        if (auto held = lock.try_acquire()) {
            return held;
        }
        if (const auto earlier = marker()) {
            static_cast<void>(store_.revoke(marker_, earlier->owner, earlier->token, "run again"));
        }
    } catch (const std::system_error& error) {
        if (error.code() != errc::store_unavailable || waits == patience::none) {
            throw;
        }
    }
    return lock.try_acquire_for(marker_ttl + std::chrono::seconds{1});
}

}  // namespace holdfast::cli
