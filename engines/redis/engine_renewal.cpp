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

/// The renewals of one call, on their way.
struct renewal_round {
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

struct run_of_renewals {
    script_call script;
    std::vector<std::size_t> items;
};

void renew_each_while_moving(const std::shared_ptr<const catalogue>& from,
                             const std::shared_ptr<renewal_round>& all,
                             const std::vector<std::size_t>& items, call how) {
    for (const auto item : items) {
        all->missing.fetch_add(1);
        renew_while_moving(from, all->requests[item], how, [all, item](renew_reply reply) {
            all->replies[item] = std::move(reply);
            all->arrived();
        });
    }
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
    std::map<std::pair<renewal_script, std::uint16_t>, std::vector<run_of_renewals>> runs;
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
        const auto key = dialect_.key_of(request.name);
        auto& group = runs[{script_for(request), slot_for(key)}];
        if (group.empty() || group.back().items.size() == renewals_per_script) {
            group.push_back({renewal_call(script_for(request)), {}});
        }
        add_renewal(group.back().script, request, key);
        group.back().items.push_back(index);
    }
    for (auto& [kind_and_slot, group] : runs) {
        for (auto& one : group) {
            all->missing.fetch_add(1);
            const auto& any_name = all->requests[one.items.front()].name;
            add_absent(one.script, dialect_.key_of(any_name), dialect_);
            run(std::move(one.script), kind_and_slot.second, how,
                [this, all, how, items = std::move(one.items)](const connection::result& result) {
                    if (says_moving(result)) {
                        renew_each_while_moving(catalogue_, all, items, how);
                    } else {
                        all->fill(items, result);
                    }
                    all->arrived();
                });
        }
    }
    write_card(std::chrono::milliseconds{0});
    all->arrived();
}

}  // namespace holdfast::engines::redis
