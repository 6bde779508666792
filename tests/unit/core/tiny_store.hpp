#pragma once

#include <algorithm>
#include <core/script.hpp>
#include <map>
#include <string>
#include <vector>

namespace script {

/// The least a store can be: who has what, and until when. In doubt, `engine.hpp` is right.
class tiny_store {
public:
    holdfast::engines::acquire_reply acquire(const holdfast::engines::acquire_request& request,
                                             holdfast::clock::time_point now) {
        auto& holds = live(request.name, now);
        auto* mine = find(holds, request.owner);
        const bool already = mine != nullptr && mine->mode == request.mode;
        const bool downgrade = mine != nullptr && request.mode == holdfast::claim_mode::shared;
        if (!already && !downgrade && in_the_way(holds, request)) {
            return busy(5ms);
        }
        if (mine == nullptr) {
            holds.push_back({request.owner, request.mode, request.permits, {}, 0, now});
            mine = &holds.back();
        }
        if (!already && !downgrade) {
            mine->first_token = last_token_ + 1;
            mine->token_count = request.token_count;
            last_token_ += request.token_count;
        }
        mine->mode = request.mode;
        mine->expires = std::max(mine->expires, now + request.ttl);
        return granted(mine->first_token, mine->token_count);
    }

    holdfast::engines::renew_reply renew(const holdfast::engines::renew_request& request,
                                         holdfast::clock::time_point now) {
        auto* mine = find(live(request.name, now), request.owner);
        const bool covered = mine != nullptr && (mine->mode == request.mode ||
                                                 mine->mode == holdfast::claim_mode::exclusive);
        if (!covered) {
            return gone();
        }
        mine->expires = std::max(mine->expires, now + request.ttl);
        return renewed();
    }

    holdfast::engines::release_reply release(const holdfast::engines::release_request& request,
                                             holdfast::clock::time_point now) {
        auto& holds = live(request.name, now);
        auto* mine = find(holds, request.owner);
        if (mine == nullptr) {
            return nothing_to_release();
        }
        if (request.linger.count() > 0) {
            mine->owner = {};
            mine->expires = now + request.linger;
        } else {
            std::erase_if(holds, [&](const auto& one) { return one.owner == request.owner; });
        }
        return released();
    }

    [[nodiscard]] std::size_t held(holdfast::clock::time_point now) {
        std::size_t count = 0;
        for (const auto& [name, holds] : holds_) {
            count += live(name, now).size();
        }
        return count;
    }

private:
    struct hold {
        holdfast::owner_id owner;
        holdfast::claim_mode mode{};
        std::uint32_t permits{};
        std::uint64_t first_token{};
        std::uint32_t token_count{};
        holdfast::clock::time_point expires;
    };

    std::vector<hold>& live(const std::string& name, holdfast::clock::time_point now) {
        auto& holds = holds_[name];
        std::erase_if(holds, [&](const auto& one) { return one.expires <= now; });
        return holds;
    }

    static hold* find(std::vector<hold>& holds, const holdfast::owner_id& owner) {
        const auto found = std::find_if(holds.begin(), holds.end(),
                                        [&](const auto& one) { return one.owner == owner; });
        return found == holds.end() ? nullptr : &*found;
    }

    static bool in_the_way(const std::vector<hold>& holds,
                           const holdfast::engines::acquire_request& request) {
        std::uint32_t taken = 0;
        bool others = false;
        bool writer = false;
        for (const auto& one : holds) {
            taken += one.permits;
            others = others || one.owner != request.owner;
            writer = writer || one.mode == holdfast::claim_mode::exclusive;
        }
        switch (request.mode) {
            case holdfast::claim_mode::permit:
                return taken + request.permits > request.limit;
            case holdfast::claim_mode::shared:
                return writer;
            case holdfast::claim_mode::exclusive:
                return others;
        }
        return true;
    }

    std::map<std::string, std::vector<hold>> holds_;
    std::uint64_t last_token_{};
};

}  // namespace script
