#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nodes/actions.hpp>
#include <nodes/claims.hpp>
#include <nodes/name_news.hpp>
#include <nodes/outbox.hpp>
#include <nodes/sessions.hpp>

namespace holdfast::engines::nodes {

/// The recipe of locks over ordered nodes, as a machine without clock, thread or I/O: its inputs are
/// the client's calls, the store's answers and the time, its output is a list of actions. Requests for
/// the store are answered with the function of the same subject, exactly once.
///
/// Calls for one claim, and those made after a call that waits, are performed one after another.
///
/// Thread safety: none.
class recipe {
public:
    recipe(std::string client, const recipe_settings& settings)
        : settings_{settings}, claims_{std::move(client), settings_, outbox_, sessions_, news_} {}
    recipe(const recipe&) = delete;
    recipe& operator=(const recipe&) = delete;
    ~recipe() = default;

    [[nodiscard]] actions acquire(call_id id, acquire_request request, clock::time_point deadline,
                                  clock::time_point now);
    [[nodiscard]] actions renew(call_id id, std::vector<renew_request> batch,
                                clock::time_point deadline, clock::time_point now);
    [[nodiscard]] actions release(call_id id, release_request request, clock::time_point deadline,
                                  clock::time_point now);
    /// How many watch the name from now on.
    [[nodiscard]] actions watchers(const std::string& name, std::uint32_t count);
    /// Whether those who watch the name hear news of it.
    [[nodiscard]] bool hears(const std::string& name) const { return news_.hears(name); }

    [[nodiscard]] actions on_session(request_id id, const session_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_closed(request_id id, const remove_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_created(request_id id, const create_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_read(request_id id, const queue_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_removed(request_id id, const remove_reply& reply, clock::time_point now);
    [[nodiscard]] actions on_changed(watch_id id, clock::time_point now);
    /// There is no such watch: it could not be started.
    [[nodiscard]] actions on_watch_failed(watch_id id, clock::time_point now);
    [[nodiscard]] actions on_session_ended(session_id session, clock::time_point now);
    [[nodiscard]] actions on_node_removed(const std::string& name, const std::string& id,
                                          clock::time_point now);
    [[nodiscard]] actions on_time(clock::time_point now);
    /// When `on_time` is to be called.
    [[nodiscard]] clock::time_point next_wake() const;

    /// Answers all calls with `shut_down` and closes the sessions, except where a name lingers.
    [[nodiscard]] actions shut_down(clock::time_point now);
    /// Whether sessions are still being closed.
    [[nodiscard]] bool closing() const noexcept { return sessions_.closing(); }

private:
    struct renewal {
        call_id id{};
        clock::time_point deadline;
        clock::time_point asked_at;
        std::vector<renew_request> batch;
        std::vector<std::optional<renew_reply>> replies;
    };

    template <class Step>
    [[nodiscard]] actions after(clock::time_point now, const Step& step);
    [[nodiscard]] bool has_caller(const waiting_call& call);
    void take(waiting_call call, clock::time_point now);
    void start(waiting_call call, clock::time_point now);
    void perform_backlog(const std::string& name, clock::time_point now);
    void refuse_late_calls(clock::time_point now);
    [[nodiscard]] bool settle(renewal& call, clock::time_point now);
    [[nodiscard]] std::optional<renew_reply> settle(const renew_request& request, const renewal& call,
                                                    clock::time_point now);
    void fail_renewals(session_key session, const failure& reason);

    const recipe_settings settings_;
    outbox outbox_;
    session_pool sessions_{outbox_, settings_};
    name_news news_{outbox_};
    claim_table claims_;
    std::vector<renewal> renewals_;
    /// Calls that wait for others, by the name.
    std::map<std::string, std::deque<waiting_call>> backlogs_;
    bool shut_down_{};
};

}  // namespace holdfast::engines::nodes
