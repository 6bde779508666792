#include <redis/engine.hpp>

#include <common/validate.hpp>
#include <redis/errors.hpp>
#include <redis/moving.hpp>

#include <map>
#include <utility>

namespace holdfast::engines::redis {

namespace {

/// So many in one run of a script, so that the server can serve others in between.
constexpr std::size_t renewals_per_script = 64;

}  // namespace

/// The renewals of one call, on their way.
struct redis_engine::renewal_round {
    std::vector<renew_request> requests;
    std::vector<renew_reply> replies;
    std::atomic<std::size_t> missing{1};
    completion<std::vector<renew_reply>> done;

    void arrived() {
        if (missing.fetch_sub(1) == 1) {
            done(std::move(replies));
        }
    }

    /// What one run of a script brought for `items`.
    void fill(const std::vector<std::size_t>& items, const connection::result& result) {
        for (std::size_t place = 0; place < items.size(); ++place) {
            auto& reply = replies[items[place]];
            if (result.error) {
                reply.error = result.error;
            } else if (const auto& answer = result.replies.front(); answer.is_error()) {
                reply.error = meaning_of(answer);
            } else if (place >= answer.items.size()) {
                reply.error = senseless_answer("renew");
            } else {
                reply = renewal_answer(answer.items[place], requests[items[place]].owner);
            }
        }
    }
};

namespace {

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

}  // namespace

/// One run for all of a kind in a slot; a run that fails concerns nobody else.
void redis_engine::renew(std::vector<renew_request> batch, call how,
                         completion<std::vector<renew_reply>> done) {
    const auto all = std::make_shared<renewal_round>();
    all->requests = std::move(batch);
    all->replies.resize(all->requests.size());
    all->done = std::move(done);
    const bool late = clock::now() >= how.deadline;
    std::map<std::pair<renewal_script, std::uint16_t>, std::vector<std::vector<std::size_t>>> runs;
    for (std::size_t index = 0; index < all->requests.size(); ++index) {
        const auto& request = all->requests[index];
        auto& error = all->replies[index].error;
        error = check_request(request, promises_);
        if (!error) {
            error = check_key(request.name, request.kind);
        }
        if (!error && late) {
            error = {errc::store_unavailable, "the deadline had passed before anything was sent"};
        }
        if (error) {
            continue;
        }
        auto& group = runs[{script_for(request), slot_for(dialect_.key_of(request.name))}];
        if (group.empty() || group.back().size() == renewals_per_script) {
            group.emplace_back();
        }
        group.back().push_back(index);
    }
    if (dialect_.clustered && runs.size() > 1) {
        // All are answered together. What one server has renewed must be known in time, also when
        // another one hangs.
        const auto now = clock::now();
        how.deadline = now + (how.deadline - now) / 2;
    }
    for (auto& [kind_and_slot, group] : runs) {
        for (auto& items : group) {
            renew_together(all, std::move(items), how);
        }
    }
    write_card(std::chrono::milliseconds{0});
    all->arrived();
}

/// A run that is refused because of one item's keys (a permission that is gone, a key of another type)
/// is asked for again, each item alone.
void redis_engine::renew_together(const std::shared_ptr<renewal_round>& all,
                                  std::vector<std::size_t> items, call how) {
    const auto& first = all->requests[items.front()];
    const auto first_key = dialect_.key_of(first.name);
    auto script = renewal_call(script_for(first));
    for (const auto item : items) {
        const auto& request = all->requests[item];
        add_renewal(script, request, dialect_.key_of(request.name));
    }
    add_absent(script, first_key, dialect_);
    all->missing.fetch_add(1);
    run(std::move(script), slot_for(first_key), how,
        [this, all, how, items = std::move(items)](const connection::result& result) {
            if (says_moving(result)) {
                for (const auto item : items) {
                    all->missing.fetch_add(1);
                    renew_while_moving(catalogue_, all->requests[item], how,
                                       [all, item](renew_reply reply) {
                                           all->replies[item] = std::move(reply);
                                           all->arrived();
                                       });
                }
            } else if (items.size() > 1 && may_concern_some(result)) {
                for (const auto item : items) {
                    renew_together(all, {item}, {how.deadline, caller::must_not_block});
                }
            } else {
                all->fill(items, result);
            }
            all->arrived();
        });
}

}  // namespace holdfast::engines::redis
