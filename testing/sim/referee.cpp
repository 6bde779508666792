#include <referee.hpp>

#include <algorithm>

namespace holdfast::testing::sim {

std::uint64_t referee::hold_begins(hold_view hold, fencing_token began_after) {
    auto& lock = locks_[hold.lock];
    hold.serial = ++last_serial_;
    run_.log.hash({hold.serial, hold.token.value, hold.client});
    check_token_is_new(lock, hold);
    // A store that broke its word may leave a client with an old block of tokens; they are refused.
    if (run_.store_kept_its_word && hold.token <= began_after) {
        run_.log.violated("token order", "client ", +hold.client, " was granted \"",
                          lock_name(hold.lock), "\" with token ", hold.token.value, ", but token ",
                          began_after.value, " had been granted before it asked");
    }
    lock.largest_completed = std::max(lock.largest_completed, hold.token);
    lock.holds.push_back(hold);
    check_exclusion(lock, hold);
    return hold.serial;
}

void referee::check_token_is_new(lock_state& lock, const hold_view& hold) {
    if (std::find(lock.tokens.begin(), lock.tokens.end(), hold.token) != lock.tokens.end()) {
        run_.log.violated("one hold per token", "client ", +hold.client, " holds \"",
                          lock_name(hold.lock), "\" with token ", hold.token.value,
                          ", which another hold has had");
    }
    lock.tokens.push_back(hold.token);
}

hold_view* referee::find(std::uint64_t serial) {
    for (auto& lock : locks_) {
        for (auto& hold : lock.holds) {
            if (hold.serial == serial) {
                return &hold;
            }
        }
    }
    return nullptr;
}

void referee::hold_extended(std::uint64_t serial, clock::time_point valid_until) {
    if (auto* hold = find(serial)) {
        if (run_.now() >= hold->valid_until && valid_until > hold->valid_until) {
            run_.log.violated("loss is final", "client ", +hold->client, " \"", lock_name(hold->lock),
                              "\" token ", hold->token.value, " was valid until ",
                              relative(hold->valid_until), " and is extended after that, to ",
                              relative(valid_until));
        }
        hold->valid_until = valid_until;
        check_exclusion(locks_[hold->lock], *hold);
    }
}

void referee::hold_changes_mode(std::uint64_t serial, claim_mode mode, fencing_token token) {
    if (auto* hold = find(serial)) {
        auto& lock = locks_[hold->lock];
        const bool renamed = hold->token != token;
        hold->mode = mode;
        hold->token = token;
        if (renamed) {
            check_token_is_new(lock, *hold);
            lock.largest_completed = std::max(lock.largest_completed, token);
        }
        check_exclusion(lock, *hold);
    }
}

void referee::hold_ends(std::uint64_t serial) {
    for (auto& lock : locks_) {
        std::erase_if(lock.holds, [&](const hold_view& hold) { return hold.serial == serial; });
    }
}

void referee::check_exclusion(const lock_state& lock, const hold_view& newest) {
    const auto now = run_.now();
    if (!run_.store_kept_its_word || now >= newest.valid_until) {
        return;
    }
    if (newest.mode == claim_mode::permit) {
        check_permits(lock, newest);
        return;
    }
    for (const auto& other : lock.holds) {
        const bool conflict =
            other.mode == claim_mode::exclusive || newest.mode == claim_mode::exclusive;
        if (other.serial != newest.serial && conflict && now < other.valid_until) {
            run_.log.violated("mutual exclusion", "clients ", +other.client, " (token ",
                              other.token.value, ", valid until ", relative(other.valid_until),
                              ") and ", +newest.client, " (token ", newest.token.value,
                              ", valid until ", relative(newest.valid_until), ") are inside \"",
                              lock_name(newest.lock), "\" at once");
        }
    }
}

void referee::check_permits(const lock_state& lock, const hold_view& newest) {
    std::uint32_t taken = 0;
    for (const auto& hold : lock.holds) {
        taken += run_.now() < hold.valid_until ? hold.permits : 0;
    }
    if (taken > run_.numbers.permit_limit) {
        run_.log.violated("mutual exclusion", taken, " permits of ", run_.numbers.permit_limit,
                          " of \"", lock_name(newest.lock), "\" are in valid hands at once");
    }
}

bool referee::admit(const hold_view& hold) {
    auto& resource = locks_[hold.lock].resource;
    if (hold.token < resource.largest) {
        return false;
    }
    if (hold.token == resource.largest && resource.user_of_largest != hold.serial) {
        run_.log.violated("fenced order", "two holds write to \"", lock_name(hold.lock),
                          "\" with token ", hold.token.value);
    }
    resource.largest = hold.token;
    resource.user_of_largest = hold.serial;
    return true;
}

std::optional<std::uint64_t> referee::read(const hold_view& hold) {
    if (!admit(hold)) {
        return std::nullopt;
    }
    return locks_[hold.lock].resource.value;
}

bool referee::write(const hold_view& hold, std::uint64_t seen) {
    if (!admit(hold)) {
        return false;
    }
    auto& resource = locks_[hold.lock].resource;
    if (resource.value != seen) {
        run_.log.violated("fenced order", "client ", +hold.client, " writes to \"",
                          lock_name(hold.lock), "\" with token ", hold.token.value, " and has read ",
                          seen, ", but there is ", resource.value, " by now: an update is lost");
    }
    resource.value = seen + 1;
    ++resource.accepted;
    return true;
}

bool referee::increment(const hold_view& hold) {
    if (!admit(hold)) {
        return false;
    }
    auto& resource = locks_[hold.lock].resource;
    ++resource.value;
    ++resource.accepted;
    return true;
}

void referee::check_counters() {
    for (const auto& lock : locks_) {
        if (lock.resource.value != lock.resource.accepted) {
            run_.log.violated("fenced order", lock.resource.accepted, " increments were accepted, but ",
                              lock.resource.value, " were counted");
        }
    }
}

}  // namespace holdfast::testing::sim
