#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/owner.hpp>

/// Which keys and channels belong to a name: Redisson's, byte for byte, and ours beside them in the
/// same slot.
namespace holdfast::engines::redis {

/// `prefix:{name}`, or `prefix:name` when the name contains an opening brace, wherever it is.
[[nodiscard]] std::string prefixed(std::string_view prefix, std::string_view name);
/// `{name}:suffix`, or `name:suffix` when the name contains an opening brace, wherever it is.
[[nodiscard]] std::string suffixed(std::string_view name, std::string_view suffix);

/// `prefix:{name}`, or `prefix::name` when the name contains an opening brace: no two names share one.
/// (`prefixed` and `suffixed` give `foo` and `{foo}` the same key; there we cannot differ from
/// Redisson.)
[[nodiscard]] std::string own_key(std::string_view prefix, std::string_view name);
/// Whether a lock at `key` could be taken for a key of ours, for a counter of tokens, or for the line
/// of a fair lock.
[[nodiscard]] bool is_reserved(std::string_view key) noexcept;

// Redisson's.
[[nodiscard]] std::string lock_channel(std::string_view name);
[[nodiscard]] std::string fair_channel(std::string_view name, std::string_view owner);
[[nodiscard]] std::string fair_queue(std::string_view name);
[[nodiscard]] std::string fair_timeouts(std::string_view name);
[[nodiscard]] std::string read_write_channel(std::string_view name);
/// Followed by `:1`, `:2` …: one for each hold of a reader's.
[[nodiscard]] std::string reader_timeout(std::string_view name, std::string_view owner);
[[nodiscard]] std::string semaphore_channel(std::string_view name);
[[nodiscard]] std::string semaphore_timeouts(std::string_view name);
/// Always with braces, whatever the name contains: Redisson does not use its own rule here.
[[nodiscard]] std::string latch_channel(std::string_view name);
[[nodiscard]] std::string redisson_token(std::string_view name);

// Ours.
/// What we know about the holders of a name: tokens, since when.
[[nodiscard]] std::string holds_key(std::string_view name);
/// The name whose `holds_key` this is; nothing for other keys.
[[nodiscard]] std::optional<std::string> name_in_holds_key(std::string_view key);
/// What those in the line of a fair lock want to be granted when it is their turn.
[[nodiscard]] std::string fair_wishes(std::string_view name);
/// Who wants to be given a plain lock when it is released.
[[nodiscard]] std::string lock_wishes(std::string_view name);
/// Where a client hears that it was given a plain lock: the name's part, `:` and the client's id.
[[nodiscard]] std::string grant_channels(std::string_view name);
[[nodiscard]] std::string grant_channel(std::string_view name, std::string_view client);
/// That a free lock or permit is another library's to take, for a moment.
[[nodiscard]] std::string lock_turn(std::string_view name);
/// What those of ours subscribe to who listen to the channel of a name, so that the others among its
/// listeners can be counted. Names that share that channel share this one.
[[nodiscard]] std::string listeners_channel(std::string_view name);
[[nodiscard]] std::string revocation_key(std::string_view name);
/// Never exists. A script that names it is refused (TRYAGAIN) while the slot is on its way from one
/// server of a cluster to another.
[[nodiscard]] std::string absent_key(std::string_view name);
/// Says that the number under a name is a latch of ours, and no semaphore.
[[nodiscard]] std::string latch_mark(std::string_view name);
/// Remembers that a latch operation was carried out, so that it counts once.
[[nodiscard]] std::string latch_request_key(std::string_view name, std::string_view request);
/// The counter that tokens are taken from: one for the whole server, or one for each slot of a
/// cluster: `holdfast_token:{n}`, n the smallest number whose decimal text falls into the slot.
[[nodiscard]] std::string token_counter();
[[nodiscard]] std::string token_counter(std::uint16_t slot);
[[nodiscard]] std::string card_key(std::string_view client);
/// Where a client hears that its holds were revoked.
[[nodiscard]] std::string client_channel(std::string_view client);

/// 0 … 16383, as the servers count.
[[nodiscard]] std::uint16_t slot_of(std::string_view key) noexcept;
/// Whether all keys and channels derived from `name` fall into the name's slot, as servers count:
/// `{a}b` and `a}b{c}` do; `a{b`, `a}b` and `{}x` do not. A latch's channel follows a rule of its own.
[[nodiscard]] bool fits_one_slot(std::string_view name) noexcept;
[[nodiscard]] bool latch_fits_one_slot(std::string_view name) noexcept;

}  // namespace holdfast::engines::redis
