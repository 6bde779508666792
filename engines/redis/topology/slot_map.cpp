#include <redis/topology/slot_map.hpp>

#include <algorithm>

namespace holdfast::engines::redis {

namespace {

/// The metadata is a list of names and values; of interest is the address of a server that was told to
/// call itself by a name and has none.
[[nodiscard]] std::string ip_in(const value& metadata) {
    for (std::size_t index = 0; index + 1 < metadata.items.size(); index += 2) {
        if (metadata.items[index].text == "ip") {
            return metadata.items[index + 1].text;
        }
    }
    return {};
}

/// [host, port, id, [metadata]]
[[nodiscard]] std::optional<node_address> read_node(const value& node, const node_address& asked) {
    constexpr std::int64_t highest_port = 65'535;
    if (node.items.size() < 2 || node.items[1].type != value::kind::integer) {
        return std::nullopt;
    }
    const auto port = node.items[1].integer;
    if (port <= 0 || port > highest_port) {
        return std::nullopt;
    }
    std::string host = node.items[0].text;
    if (host == "?") {
        host = node.items.size() > 3 ? ip_in(node.items[3]) : std::string{};
        if (host.empty()) {
            return std::nullopt;
        }
    }
    return node_address{host.empty() ? asked.host : host, static_cast<std::uint16_t>(port), {}};
}

[[nodiscard]] std::optional<std::uint16_t> read_slot(const value& number) {
    if (number.type != value::kind::integer || number.integer < 0 ||
        number.integer >= static_cast<std::int64_t>(slot_map::slots)) {
        return std::nullopt;
    }
    return static_cast<std::uint16_t>(number.integer);
}

}  // namespace

std::optional<slot_map> slot_map::read(const value& answer, const node_address& asked) {
    if (answer.type != value::kind::array) {
        return std::nullopt;
    }
    slot_map result;
    for (const value& range : answer.items) {
        if (!result.add_range(range, asked)) {
            return std::nullopt;
        }
    }
    return result;
}

/// [first slot, last slot, master, replica, …]
bool slot_map::add_range(const value& range, const node_address& asked) {
    if (range.items.size() < 3) {
        return false;
    }
    const auto first = read_slot(range.items[0]);
    const auto last = read_slot(range.items[1]);
    if (!first || !last || *first > *last) {
        return false;
    }
    const auto server = read_node(range.items[2], asked);
    if (!server) {
        return true;  // somebody has these slots, but nobody says who: another master will
    }
    const place owner = place_of(*server);
    std::fill(owners_.begin() + *first, owners_.begin() + *last + 1, owner);
    std::uint32_t replicas = 0;
    for (std::size_t index = 3; index < range.items.size(); ++index) {
        if (const auto replica = read_node(range.items[index], asked)) {
            ++replicas;
            if (std::find(replicas_.begin(), replicas_.end(), *replica) == replicas_.end()) {
                replicas_.push_back(*replica);
            }
        }
    }
    master& entry = masters_[owner - 1U];
    entry.replicas = std::max(entry.replicas, replicas);
    return true;
}

slot_map::place slot_map::place_of(const node_address& server) {
    const auto found = std::find_if(masters_.begin(), masters_.end(),
                                    [&](const master& each) { return each.address == server; });
    const auto index = found - masters_.begin();
    if (found == masters_.end()) {
        masters_.push_back({server, 0});
    }
    return static_cast<place>(index + 1);
}

const node_address* slot_map::owner(std::uint16_t slot) const noexcept {
    const place found = owners_[slot % slots];
    return found == 0 ? nullptr : &masters_[found - 1U].address;
}

void slot_map::set_owner(std::uint16_t slot, const node_address& server) {
    owners_[slot % slots] = place_of(server);
}

std::vector<node_address> slot_map::masters() const {
    std::vector<node_address> result;
    for (const master& each : masters_) {
        result.push_back(each.address);
    }
    return result;
}

bool slot_map::is_master(const node_address& server) const noexcept {
    return std::any_of(masters_.begin(), masters_.end(),
                       [&](const master& each) { return each.address == server; });
}

std::uint32_t slot_map::replicas_of(const node_address& server) const noexcept {
    const auto found = std::find_if(masters_.begin(), masters_.end(),
                                    [&](const master& each) { return each.address == server; });
    return found == masters_.end() ? 0 : found->replicas;
}

std::size_t slot_map::slots_of_nobody() const noexcept {
    return static_cast<std::size_t>(std::count(owners_.begin(), owners_.end(), place{0}));
}

std::vector<std::uint16_t> slot_map::a_slot_of_each() const {
    std::vector<std::uint16_t> result;
    std::vector<bool> seen(masters_.size() + 1);
    for (std::size_t slot = 0; slot < slots; ++slot) {
        const place owner = owners_[slot];
        if (owner != 0 && !seen[owner]) {
            seen[owner] = true;
            result.push_back(static_cast<std::uint16_t>(slot));
        }
    }
    return result;
}

}  // namespace holdfast::engines::redis
