#include <algorithm>
#include <common/validate.hpp>
#include <limits>
#include <records/codec.hpp>
#include <utility>

namespace holdfast::engines::records {

namespace {

using namespace std::chrono;

constexpr std::string_view format{"hfr1"};
constexpr std::size_t checksum_size = 8;
constexpr std::size_t smallest_hold = 9;

/// FNV-1a.
std::uint64_t checksum(std::string_view bytes) noexcept {
    std::uint64_t sum = 0xcbf29ce484222325U;
    for (const char byte : bytes) {
        sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    return sum;
}

class writer {
public:
    void number(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7U) {
            bytes_ += static_cast<char>(value | 0x80U);
        }
        bytes_ += static_cast<char>(value);
    }
    /// Small ones take little room, whatever their sign.
    void signed_number(std::int64_t value) {
        const auto bits = static_cast<std::uint64_t>(value);
        number(value < 0 ? ~(bits << 1U) : bits << 1U);
    }
    void fixed(std::uint64_t value) {
        for (unsigned shift = 0; shift < 64; shift += 8) {
            bytes_ += static_cast<char>(value >> shift);
        }
    }
    void text(std::string_view value) {
        number(value.size());
        bytes_ += value;
    }
    void raw(std::string_view value) { bytes_ += value; }
    [[nodiscard]] std::string finish() && {
        fixed(checksum(bytes_));
        return std::move(bytes_);
    }

private:
    std::string bytes_;
};

/// After the first thing that is not there, everything reads as zero, and `sound` is false.
class reader {
public:
    explicit reader(std::string_view bytes) noexcept : rest_{bytes} {}

    [[nodiscard]] std::uint64_t number() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint64_t byte = take();
            const std::uint64_t part = byte & 0x7fU;
            if (shift == 63 && part > 1) {
                break;
            }
            value |= part << shift;
            if (byte < 0x80) {
                // One way to write each number.
                sound_ = sound_ && (part != 0 || shift == 0);
                return sound_ ? value : 0;
            }
        }
        sound_ = false;
        return 0;
    }
    template <class Small>
    [[nodiscard]] Small number_up_to(Small most) noexcept {
        const auto value = number();
        require(value <= static_cast<std::uint64_t>(most));
        return sound_ ? static_cast<Small>(value) : Small{};
    }
    [[nodiscard]] std::int64_t signed_number() noexcept {
        const auto value = number();
        return static_cast<std::int64_t>((value & 1U) != 0 ? ~(value >> 1U) : value >> 1U);
    }
    [[nodiscard]] std::uint64_t fixed() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 8) {
            value |= take() << shift;
        }
        return value;
    }
    [[nodiscard]] std::string text(std::size_t longest) {
        std::size_t size = number_up_to(longest);
        require(size <= rest_.size());
        size = sound_ ? size : 0;
        std::string value{rest_.substr(0, size)};
        rest_.remove_prefix(size);
        return value;
    }
    /// Of things that take at least `smallest` bytes each: damaged input makes nobody reserve more.
    [[nodiscard]] std::size_t count(std::size_t smallest) noexcept {
        return number_up_to(rest_.size() / smallest);
    }
    void require(bool holds) noexcept { sound_ = sound_ && holds; }
    [[nodiscard]] bool sound() const noexcept { return sound_; }
    [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

private:
    std::uint64_t take() noexcept {
        if (rest_.empty()) {
            sound_ = false;
            return 0;
        }
        const auto byte = static_cast<unsigned char>(rest_.front());
        rest_.remove_prefix(1);
        return byte;
    }

    std::string_view rest_;
    bool sound_{true};
};

owner_id client_of(const owner_id& owner) noexcept {
    return {owner.high, owner.low, 0};
}

/// All clients that a record names, in order, each once.
std::vector<owner_id> clients_of(const saved_record& record) {
    std::vector<owner_id> clients;
    for (const hold& one : record.holds) {
        clients.push_back(client_of(one.owner));
    }
    for (const owner_id& request : record.counted) {
        clients.push_back(client_of(request));
    }
    if (record.revocation) {
        clients.push_back(client_of(record.revocation->owner));
    }
    std::sort(clients.begin(), clients.end());
    clients.erase(std::unique(clients.begin(), clients.end()), clients.end());
    return clients;
}

std::int64_t microseconds_of(clock::time_point time) noexcept {
    return duration_cast<microseconds>(time.time_since_epoch()).count();
}
std::int64_t microseconds_of(system_clock::time_point time) noexcept {
    return duration_cast<microseconds>(time.time_since_epoch()).count();
}

/// The difference as it wraps around: times may be anything.
std::int64_t difference(std::int64_t left, std::int64_t right) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) -
                                     static_cast<std::uint64_t>(right));
}

constexpr std::int64_t farthest = std::numeric_limits<std::int64_t>::max() / 1000 - 1;

bool in_range(std::int64_t microseconds_since_epoch) noexcept {
    return microseconds_since_epoch >= -farthest && microseconds_since_epoch <= farthest;
}

/// Bits: which parts follow.
constexpr std::uint64_t has_latch = 1;
constexpr std::uint64_t has_revocation = 2;

class encoder {
public:
    explicit encoder(const saved_record& record) : record_{record}, clients_{clients_of(record)} {}

    [[nodiscard]] std::string run() && {
        out_.raw(format);
        out_.fixed(record_.edit);
        out_.number(record_.last_token);
        out_.number((record_.latch ? has_latch : 0) | (record_.revocation ? has_revocation : 0));
        write_clients();
        write_holds();
        const auto skipped = record_.counted.size() - std::min(record_.counted.size(), most_counted);
        out_.number(record_.counted.size() - skipped);
        for (auto request = record_.counted.begin() + static_cast<std::ptrdiff_t>(skipped);
             request != record_.counted.end(); ++request) {
            write_owner(*request);
        }
        if (record_.latch) {
            out_.number(record_.latch->count);
            out_.signed_number(microseconds_of(record_.latch->expires));
            out_.fixed(record_.latch->life.line);
            out_.number(record_.latch->life.openings);
        }
        if (record_.revocation) {
            const revocation_info& last = *record_.revocation;
            write_owner(last.owner);
            out_.number(last.token.value);
            out_.text(shortened(last.actor, longest_remark));
            out_.text(shortened(last.reason, longest_remark));
            out_.signed_number(microseconds_of(last.at));
        }
        return std::move(out_).finish();
    }

private:
    void write_clients() {
        out_.number(clients_.size());
        std::size_t cards = 0;
        auto next = record_.cards.begin();
        for (const owner_id& client : clients_) {
            out_.fixed(client.high);
            out_.fixed(client.low);
            while (next != record_.cards.end() && next->client < client) {
                ++next;
            }
            const bool carded =
                next != record_.cards.end() && next->client == client && ++cards <= most_cards;
            out_.number(carded ? 1 : 0);
            if (carded) {
                out_.text(shortened(next->card.host, longest_card_text));
                out_.signed_number(next->card.pid);
                out_.text(shortened(next->card.program, longest_card_text));
                out_.text(shortened(next->card.label, longest_card_text));
            }
        }
    }
    void write_holds() {
        out_.number(record_.holds.size());
        if (record_.holds.empty()) {
            return;
        }
        const hold& first = record_.holds.front();
        out_.number(first.limit);
        std::int64_t since = 0;
        std::int64_t expires = 0;
        for (const hold& one : record_.holds) {
            write_owner(one.owner);
            out_.number(static_cast<std::uint64_t>(one.mode) * 2 + (one.lingering ? 1 : 0));
            out_.number(one.permits);
            out_.signed_number(static_cast<std::int64_t>(record_.last_token - one.first_token.value));
            out_.number(one.token_count);
            out_.signed_number(difference(microseconds_of(one.since), since));
            out_.signed_number(difference(microseconds_of(one.expires), expires));
            since = microseconds_of(one.since);
            expires = microseconds_of(one.expires);
        }
    }
    void write_owner(const owner_id& owner) {
        const auto place = std::lower_bound(clients_.begin(), clients_.end(), client_of(owner));
        out_.number(static_cast<std::uint64_t>(place - clients_.begin()));
        out_.signed_number(owner.sequence);
    }

    const saved_record& record_;
    const std::vector<owner_id> clients_;
    writer out_;
};

class decoder {
public:
    explicit decoder(std::string_view bytes) noexcept : in_{bytes} {}

    [[nodiscard]] std::optional<saved_record> run() {
        record_.edit = in_.fixed();
        record_.last_token = in_.number();
        const auto parts = in_.number_up_to<std::uint64_t>(has_latch | has_revocation);
        read_clients();
        read_holds();
        const auto counted = std::min(in_.count(2), most_counted + 1);
        in_.require(counted <= most_counted);
        for (std::size_t index = 0; index < counted && in_.sound(); ++index) {
            record_.counted.push_back(read_owner());
        }
        if ((parts & has_latch) != 0) {
            const auto count = in_.number_up_to(std::numeric_limits<std::uint32_t>::max());
            const auto expires = read_time();
            const auto line = in_.fixed();
            record_.latch = {
                count, expires, {line, in_.number_up_to(std::numeric_limits<std::uint32_t>::max())}};
        }
        if ((parts & has_revocation) != 0) {
            revocation_info& last = record_.revocation.emplace();
            last.owner = read_owner();
            last.token = {in_.number()};
            last.actor = in_.text(longest_remark);
            last.reason = in_.text(longest_remark);
            last.at = system_clock::time_point{microseconds{checked(in_.signed_number())}};
        }
        if (!in_.sound() || !in_.at_end()) {
            return std::nullopt;
        }
        return std::move(record_);
    }

private:
    void read_clients() {
        constexpr std::size_t smallest_client = 17;
        const auto count = in_.count(smallest_client);
        clients_.reserve(count);
        while (clients_.size() < count && in_.sound()) {
            const auto high = in_.fixed();
            const owner_id client{high, in_.fixed(), 0};
            in_.require(clients_.empty() || clients_.back() < client);
            clients_.push_back(client);
            if (in_.number_up_to(1U) != 0) {
                holder_card card;
                card.host = in_.text(longest_card_text);
                card.pid = in_.signed_number();
                card.program = in_.text(longest_card_text);
                card.label = in_.text(longest_card_text);
                record_.cards.push_back({client, std::move(card)});
            }
        }
    }
    void read_holds() {
        constexpr auto most = std::numeric_limits<std::uint32_t>::max();
        const auto count = in_.count(smallest_hold - 1);
        const std::uint32_t limit = count == 0 ? 0 : in_.number_up_to(most);
        std::int64_t since = 0;
        std::int64_t expires = 0;
        record_.holds.reserve(count);
        while (record_.holds.size() < count && in_.sound()) {
            hold& one = record_.holds.emplace_back();
            one.owner = read_owner();
            const auto mode = in_.number_up_to(static_cast<std::uint64_t>(claim_mode::permit) * 2 + 1);
            one.mode = static_cast<claim_mode>(mode / 2);
            one.lingering = mode % 2 != 0;
            one.permits = in_.number_up_to(most);
            one.limit = limit;
            one.first_token = {record_.last_token - static_cast<std::uint64_t>(in_.signed_number())};
            one.token_count = in_.number_up_to(most);
            since = checked(sum(since, in_.signed_number()));
            expires = checked(sum(expires, in_.signed_number()));
            one.since = system_clock::time_point{microseconds{since}};
            one.expires = clock::time_point{microseconds{expires}};
        }
    }
    [[nodiscard]] owner_id read_owner() noexcept {
        const auto index = in_.number();
        in_.require(index < clients_.size());
        const auto sequence = in_.signed_number();
        if (!in_.sound()) {
            return {};
        }
        const owner_id& client = clients_[static_cast<std::size_t>(index)];
        return {client.high, client.low, sequence};
    }
    [[nodiscard]] clock::time_point read_time() noexcept {
        return clock::time_point{microseconds{checked(in_.signed_number())}};
    }
    [[nodiscard]] static std::int64_t sum(std::int64_t left, std::int64_t right) noexcept {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) +
                                         static_cast<std::uint64_t>(right));
    }
    [[nodiscard]] std::int64_t checked(std::int64_t time) noexcept {
        in_.require(in_range(time));
        return in_.sound() ? time : 0;
    }

    reader in_;
    saved_record record_;
    std::vector<owner_id> clients_;
};

}  // namespace

std::string encode(const saved_record& record) {
    return encoder{record}.run();
}

std::optional<saved_record> decode(std::string_view bytes) {
    if (bytes.size() < format.size() + checksum_size || !bytes.starts_with(format)) {
        return std::nullopt;
    }
    const auto body = bytes.substr(0, bytes.size() - checksum_size);
    if (reader{bytes.substr(body.size())}.fixed() != checksum(body)) {
        return std::nullopt;
    }
    return decoder{body.substr(format.size())}.run();
}

}  // namespace holdfast::engines::records
