#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include <nodes/actions.hpp>

namespace holdfast::engines::nodes {

/// A call of the client that has no answer yet.
struct waiting_call {
    call_id id{};
    clock::time_point deadline;
    clock::time_point asked_at;
    std::variant<acquire_request, release_request> request;

    [[nodiscard]] bool acquires() const noexcept { return request.index() == 0; }
    [[nodiscard]] const std::string& name() const noexcept {
        return std::visit([](const auto& asked) -> const std::string& { return asked.name; }, request);
    }
    [[nodiscard]] const owner_id& owner() const noexcept {
        return std::visit([](const auto& asked) -> const owner_id& { return asked.owner; }, request);
    }
};

/// The actions of one step, the requests that are under way, and the numbers of both.
class outbox {
public:
    [[nodiscard]] std::uint64_t next_id() noexcept { return ++last_id_; }

    template <class Action>
    void emit(Action wanted) {
        actions_.emplace_back(std::move(wanted));
    }
    void refuse(const waiting_call& call, const failure& reason) {
        if (call.acquires()) {
            emit(answer_acquire{call.id, {.error = reason}});
        } else {
            emit(answer_release{call.id, {.error = reason}});
        }
    }
    [[nodiscard]] actions take() { return std::exchange(actions_, {}); }

    /// A request that is about to be emitted for this claim or session.
    [[nodiscard]] request_id ask_for(std::uint64_t subject) {
        const auto id = next_id();
        requests_[id] = subject;
        return id;
    }
    /// The claim or session that the answered request is for. Zero if it is not known.
    [[nodiscard]] std::uint64_t answered(request_id id) {
        const auto request = requests_.find(id);
        return request == requests_.end() ? 0 : requests_.extract(request).mapped();
    }

private:
    std::uint64_t last_id_{};
    std::map<request_id, std::uint64_t> requests_;
    actions actions_;
};

}  // namespace holdfast::engines::nodes
