#include <redis/renewal.hpp>

#include <redis/errors.hpp>
#include <redis/layout/keys.hpp>
#include <redis/moving.hpp>

#include <atomic>
#include <map>
#include <utility>

namespace holdfast::engines::redis {

namespace {

/// So many in one run of a script, so that the server can serve others in between.
constexpr std::size_t renewals_per_script = 64;

/// Whether a refusal of a run may concern the keys of some items only. A server that is no master, is
/// full or does not know us refuses every run alike.
[[nodiscard]] bool may_concern_some(const connection::result& result) {
    if (result.error || !result.replies.front().is_error()) {
        return false;
    }
    const auto& answer = result.replies.front();
    const auto code = answer.error_code();
    return code != "NOAUTH" && code != "WRONGPASS" &&
           meaning_of(answer).code != errc::store_unavailable;
}

/// The renewals of one call, on their way.
class renewal_round : public std::enable_shared_from_this<renewal_round> {
public:
    renewal_round(std::shared_ptr<const catalogue> store, std::vector<renew_request> requests,
                  completion<std::vector<renew_reply>> done)
        : store_{std::move(store)},
          requests_{std::move(requests)},
          replies_(requests_.size()),
          done_{std::move(done)} {}

    void begin(const std::vector<failure>& refusals, call limits) {
        std::map<std::pair<renewal_script, std::uint16_t>, std::vector<std::vector<std::size_t>>> runs;
        for (std::size_t index = 0; index < requests_.size(); ++index) {
            replies_[index].error = refusals[index];
            if (refusals[index]) {
                continue;
            }
            auto& group = runs[{script_for(requests_[index]), slot_of_key(index)}];
            if (group.empty() || group.back().size() == renewals_per_script) {
                group.emplace_back();
            }
            group.back().push_back(index);
        }
        if (store_->words.clustered && runs.size() > 1) {
            // All are answered together. What one server has renewed must be known in time, also when
            // another one hangs.
            const auto now = clock::now();
            limits.deadline = now + (limits.deadline - now) / 2;
        }
        for (auto& [kind_and_slot, group] : runs) {
            for (auto& items : group) {
                run(std::move(items), limits);
            }
        }
        arrived();
    }

private:
    [[nodiscard]] std::string key_of(std::size_t index) const {
        return store_->words.key_of(requests_[index].name);
    }
    [[nodiscard]] std::uint16_t slot_of_key(std::size_t index) const {
        return store_->words.clustered ? slot_of(key_of(index)) : std::uint16_t{0};
    }

    /// A run that is refused because of one item's keys (a permission that is gone, a key of another
    /// type) is asked for again, each item alone.
    void run(std::vector<std::size_t> items, const call& limits) {
        const auto first = items.front();
        auto script = renewal_call(script_for(requests_[first]));
        for (const auto item : items) {
            add_renewal(script, requests_[item], key_of(item));
        }
        add_absent(script, key_of(first), store_->words);
        missing_.fetch_add(1);
        store_->run(std::move(script), slot_of_key(first), limits,
                    [self = shared_from_this(), limits, items = std::move(items)](
                        const connection::result& result) { self->answered(items, limits, result); });
    }

    void answered(const std::vector<std::size_t>& items, const call& limits,
                  const connection::result& result) {
        if (says_moving(result)) {
            for (const auto item : items) {
                missing_.fetch_add(1);
                renew_while_moving(store_, requests_[item], limits,
                                   [self = shared_from_this(), item](renew_reply reply) {
                                       self->replies_[item] = std::move(reply);
                                       self->arrived();
                                   });
            }
        } else if (items.size() > 1 && may_concern_some(result)) {
            for (const auto item : items) {
                run({item}, {limits.deadline, caller::must_not_block});
            }
        } else {
            fill(items, result);
        }
        arrived();
    }

    void fill(const std::vector<std::size_t>& items, const connection::result& result) {
        for (std::size_t place = 0; place < items.size(); ++place) {
            auto& reply = replies_[items[place]];
            if (result.error) {
                reply.error = result.error;
            } else if (const auto& answer = result.replies.front(); answer.is_error()) {
                reply.error = meaning_of(answer);
            } else if (place >= answer.items.size()) {
                reply.error = senseless_answer("renew");
            } else {
                reply = renewal_answer(answer.items[place], requests_[items[place]].owner);
            }
        }
    }

    void arrived() {
        if (missing_.fetch_sub(1) == 1) {
            done_(std::move(replies_));
        }
    }

    const std::shared_ptr<const catalogue> store_;
    const std::vector<renew_request> requests_;
    std::vector<renew_reply> replies_;
    std::atomic<std::size_t> missing_{1};
    const completion<std::vector<renew_reply>> done_;
};

}  // namespace

void renew_together(const std::shared_ptr<const catalogue>& store, std::vector<renew_request> requests,
                    const std::vector<failure>& refusals, call limits,
                    completion<std::vector<renew_reply>> done) {
    std::make_shared<renewal_round>(store, std::move(requests), std::move(done))
        ->begin(refusals, limits);
}

}  // namespace holdfast::engines::redis
