#include <redis/translation.hpp>

#include <redis/errors.hpp>
#include <redis/layout/revocation.hpp>

#include <algorithm>
#include <charconv>
#include <map>

/// Reads what the inspect script found.
namespace holdfast::engines::redis {

namespace {

using std::chrono::milliseconds;

/// The places of the script's answer.
enum : std::size_t {
    type_of_key,
    remaining_ms,
    fields,
    sidecar,
    revocation,
    text_value,
    permits,
    line_length,
    server_time,
    readers,
    marked_as_latch,
    places
};

[[nodiscard]] std::int64_t number(std::string_view text, std::int64_t otherwise = 0) {
    std::int64_t result{};
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), result);
    return parsed.ec == std::errc{} ? result : otherwise;
}

[[nodiscard]] std::int64_t number(const value& reply) {
    return reply.type == value::kind::integer ? reply.integer : number(reply.text);
}

/// Of a semaphore's permits.
constexpr std::size_t permit_id_length = 16;
constexpr std::int64_t permit_without_end = 922'337'203'685'477;

/// What a holder has left that the server knows no end for.
constexpr auto for_ever = milliseconds::max();

/// PTTL answers -1 for what has no end.
[[nodiscard]] milliseconds time_left(std::int64_t pttl) {
    return pttl == -1 ? for_ever : std::max(milliseconds{pttl}, milliseconds{0});
}

using text_map = std::map<std::string, std::string>;

/// A flat array of keys and values.
[[nodiscard]] text_map pairs(const value& array) {
    text_map result;
    for (std::size_t index = 0; index + 1 < array.items.size(); index += 2) {
        result[array.items[index].text] = array.items[index + 1].text;
    }
    return result;
}

/// `<first> <count> <since>[ <permits> <ids>][ lingering]`
struct sidecar_entry {
    fencing_token first;
    std::uint32_t count{1};
    std::chrono::system_clock::time_point since;
    std::uint32_t permits{1};
    std::string ids;
    bool lingering{};
};

[[nodiscard]] sidecar_entry read_entry(std::string_view text) {
    sidecar_entry entry;
    const auto take = [&text] {
        const auto blank = text.find(' ');
        const auto word = text.substr(0, blank);
        text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
        return word;
    };
    entry.first = {static_cast<std::uint64_t>(number(take()))};
    entry.count = static_cast<std::uint32_t>(number(take(), 1));
    entry.since = std::chrono::system_clock::time_point{milliseconds{number(take())}};
    constexpr std::string_view mark{"lingering"};
    if (text.starts_with(mark)) {
        entry.lingering = true;
        take();
    }
    if (!text.empty()) {
        entry.permits = static_cast<std::uint32_t>(number(take(), 1));
        entry.ids = text;
    }
    return entry;
}

class reading {
public:
    reading(const value& answer, lock_info& info)
        : answer_{answer}, info_{info}, entries_{pairs(answer.items[sidecar])} {}

    void read() {
        const auto& type = answer_.items[type_of_key].text;
        if (type == "hash") {
            read_lock();
        } else if (type == "string" && number(answer_.items[marked_as_latch]) == 1 &&
                   !entries_.contains("limit")) {
            info_.kind = name_kind::latch;
            info_.count = number(answer_.items[text_value]);
        } else if (type == "string" || !answer_.items[permits].items.empty()) {
            read_semaphore();
        }
        info_.last_revocation = read_revocation(answer_.items[revocation].text);
    }

private:
    void add(const std::string& field, claim_mode mode, milliseconds remaining) {
        constexpr std::string_view lingering_mark{":lingering"};
        const bool marked = field.ends_with(lingering_mark);
        const auto owner_text = marked ? field.substr(0, field.size() - lingering_mark.size()) : field;
        const auto owner = owner_id::parse(owner_text);
        if (!owner) {
            return;
        }
        holder_info holder;
        holder.owner = *owner;
        holder.mode = mode;
        holder.remaining = remaining;
        holder.lingering = marked;
        if (const auto found = entries_.find(owner_text); found != entries_.end()) {
            const auto entry = read_entry(found->second);
            holder.token = entry.first;
            holder.token_count = entry.count;
            holder.since = entry.since;
            holder.lingering = holder.lingering || entry.lingering;
        }
        info_.holders.push_back(std::move(holder));
    }

    void read_lock() {
        const auto held = pairs(answer_.items[fields]);
        const auto left = time_left(number(answer_.items[remaining_ms]));
        std::map<std::string, std::int64_t> reader_left;
        for (const auto& one : answer_.items[readers].items) {
            if (one.items.size() == 2) {
                reader_left[one.items[0].text] = number(one.items[1]);
            }
        }
        const bool read_write = held.contains("mode");
        constexpr std::string_view write_mark{":write"};
        for (const auto& [field, count] : held) {
            if (field == "mode") {
                continue;
            }
            const auto found = reader_left.find(field);
            if (found != reader_left.end()) {
                if (constexpr int no_such_key = -2; found->second != no_such_key) {
                    add(field, claim_mode::shared, time_left(found->second));
                }
                continue;
            }
            const bool writes = read_write && field.ends_with(write_mark);
            add(writes ? field.substr(0, field.size() - write_mark.size()) : field,
                claim_mode::exclusive, left);
        }
        if (const auto waiting = number(answer_.items[line_length]); waiting > 0) {
            info_.waiters = static_cast<std::uint32_t>(waiting);
        }
    }

    void read_semaphore() {
        const auto now = number(answer_.items[server_time]);
        // Those that are in force: the id, and when they end.
        std::map<std::string, std::int64_t> taken;
        const auto& members = answer_.items[permits].items;
        for (std::size_t index = 0; index + 1 < members.size(); index += 2) {
            const auto ends = number(members[index + 1]);
            if (members[index].text.size() == permit_id_length && ends > now) {
                taken[members[index].text] = ends;
            }
        }
        const auto total = static_cast<std::uint32_t>(taken.size());
        for (const auto& [field, text] : entries_) {
            const auto owner = owner_id::parse(field);
            if (!owner) {
                continue;
            }
            const auto entry = read_entry(text);
            const auto found = taken.find(entry.ids.substr(0, permit_id_length));
            if (found == taken.end()) {
                continue;
            }
            holder_info holder;
            holder.owner = *owner;
            holder.mode = claim_mode::permit;
            holder.permits = entry.permits;
            holder.token = entry.first;
            holder.token_count = entry.count;
            holder.since = entry.since;
            holder.remaining = milliseconds{found->second - now};
            holder.lingering = entry.lingering;
            info_.holders.push_back(std::move(holder));
            for (std::size_t id = 0; id < entry.ids.size(); id += permit_id_length) {
                taken.erase(entry.ids.substr(id, permit_id_length));
            }
        }
        for (const auto& [id, ends] : taken) {
            add_foreign_permit(id, ends >= permit_without_end ? for_ever : milliseconds{ends - now});
        }
        const bool counted = answer_.items[type_of_key].text == "string";
        if (info_.holders.empty() && !counted) {
            return;
        }
        const auto limit = entries_.find("limit");
        const auto free = std::max<std::int64_t>(number(answer_.items[text_value]), 0);
        if (info_.holders.empty() && limit == entries_.end()) {
            info_.kind = name_kind::counter;  // nothing tells which
        } else {
            info_.kind = name_kind::semaphore;
            info_.limit = static_cast<std::uint32_t>(limit == entries_.end() ? free + total
                                                                             : number(limit->second));
        }
        info_.count = free;
    }

    /// Redisson does not say who holds a permit. Its id, which that one knows it by, stands for it.
    void add_foreign_permit(const std::string& id, milliseconds remaining) {
        holder_info holder;
        for (std::size_t at = 0; at < permit_id_length; ++at) {
            auto& half = at < permit_id_length / 2 ? holder.owner.high : holder.owner.low;
            half = (half << 8U) | static_cast<unsigned char>(id[at]);
        }
        holder.mode = claim_mode::permit;
        holder.remaining = remaining;
        info_.holders.push_back(std::move(holder));
    }

    const value& answer_;
    lock_info& info_;
    text_map entries_;
};

}  // namespace

inspect_reply inspect_answer(const value& reply, std::string_view name) {
    inspect_reply answer;
    answer.info.name = name;
    if (reply.is_error()) {
        answer.error = meaning_of(reply);
    } else if (reply.items.size() == 2 && reply.items[0].text == "foreign") {
        constexpr std::string_view code = "WRONGKIND ";
        const auto& words = reply.items[1].text;
        answer.error = {errc::wrong_kind,
                        words.substr(words.starts_with(code) ? code.size() : 0) +
                            "; no lock can have this name while that is there, so use another one"};
    } else if (reply.type != value::kind::array || reply.items.size() < places) {
        answer.error = senseless_answer("inspect");
    } else {
        reading{reply, answer.info}.read();
    }
    return answer;
}

}  // namespace holdfast::engines::redis
