#include <redis/card.hpp>

#include <common/host_process.hpp>
#include <redis/layout/keys.hpp>

#include <algorithm>

namespace holdfast::engines::redis {

using std::chrono::milliseconds;

namespace {

/// A client that was killed, or had no time to take its card away, leaves it for so long.
constexpr std::chrono::minutes shortest_life{2};

}  // namespace

client_card::client_card(const client_identity& identity, router& servers, std::uint16_t slot)
    : identity_{identity},
      servers_{servers},
      key_{card_key(identity.client.client_text())},
      slot_{slot} {}

void client_card::take_away(clock::time_point deadline) {
    if (identity_.only_looks) {
        return;
    }
    servers_.send(
        slot_, router::lane::common,
        [this](std::string& out, const server_facts&) {
            append_command(out, std::vector<std::string_view>{kept_ ? "EXISTS" : "DEL", key_});
            return connection::expected{1};
        },
        {deadline, caller::may_block}, [](const connection::result&) {});
}

void client_card::write(milliseconds ttl) {
    if (identity_.only_looks) {
        return;
    }
    auto longest = longest_ttl_.load(std::memory_order_relaxed);
    bool longer = false;
    while (ttl > longest) {
        if (longest_ttl_.compare_exchange_weak(longest, ttl)) {
            longest = ttl;
            longer = true;
        }
    }
    const auto now = clock::now();
    const auto life = std::max<milliseconds>(shortest_life, longest * 2);
    auto due = due_.load(std::memory_order_relaxed);
    if (longer && life > shortest_life) {
        due_.store(now + life / 3);
    } else if (now < due || !due_.compare_exchange_strong(due, now + life / 3)) {
        return;
    }
    servers_.send(
        slot_, router::lane::common,
        [key = key_, life, card = identity_.card, mark = process_mark()](std::string& out,
                                                                         const server_facts&) {
            const auto pid = std::to_string(card.pid);
            const auto life_ms = std::to_string(life.count());
            append_command(out, std::vector<std::string_view>{"HSET", key, "host", card.host, "pid",
                                                              pid, "program", card.program, "label",
                                                              card.label, "process", mark});
            append_command(out, std::vector<std::string_view>{"PEXPIRE", key, life_ms});
            return connection::expected{2};
        },
        {now + std::chrono::seconds{2}, caller::must_not_block},
        [this](const connection::result& result) {
            // A card without an end would stay for ever.
            const bool written =
                !result.error && std::none_of(result.replies.begin(), result.replies.end(),
                                              [](const value& reply) { return reply.is_error(); });
            if (!written) {
                due_.store(clock::time_point{});
            }
        });
}

}  // namespace holdfast::engines::redis
