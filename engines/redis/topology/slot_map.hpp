#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <redis/net/settings.hpp>
#include <redis/resp/value.hpp>

namespace holdfast::engines::redis {

/// Which server of a cluster is responsible for which slot.
class slot_map {
public:
    static constexpr std::size_t slots = 16'384;

    /// Takes apart what CLUSTER SLOTS answered. Servers that do not know their own address, or are told
    /// not to say it, leave it out: they mean the one that was asked. Nothing when it makes no sense.
    [[nodiscard]] static std::optional<slot_map> read(const value& answer, const node_address& asked);

    /// Nothing: nobody, as far as is known.
    [[nodiscard]] const node_address* owner(std::uint16_t slot) const noexcept;
    void set_owner(std::uint16_t slot, const node_address& server);
    [[nodiscard]] std::vector<node_address> masters() const;
    [[nodiscard]] bool is_master(const node_address& server) const noexcept;
    /// The replicas of all masters.
    [[nodiscard]] const std::vector<node_address>& replicas() const noexcept { return replicas_; }
    [[nodiscard]] std::uint32_t replicas_of(const node_address& server) const noexcept;
    /// How many slots nobody has, as far as is known.
    [[nodiscard]] std::size_t slots_of_nobody() const noexcept;
    /// One slot of each master.
    [[nodiscard]] std::vector<std::uint16_t> a_slot_of_each() const;
    [[nodiscard]] bool empty() const noexcept { return masters_.empty(); }

private:
    struct master {
        node_address address;
        std::uint32_t replicas{};
    };

    /// A place in `masters_`, counted from one; zero is nobody.
    using place = std::uint16_t;

    [[nodiscard]] place place_of(const node_address& server);
    [[nodiscard]] bool add_range(const value& range, const node_address& asked);

    std::vector<master> masters_;
    std::vector<node_address> replicas_;
    std::array<place, slots> owners_{};
};

}  // namespace holdfast::engines::redis
