#include <api/request.hpp>
#include <holdfast/multi_lock.hpp>
#include <runtime/joint_hold.hpp>

#include <algorithm>
#include <utility>

namespace holdfast {

release_outcome multi_release::worst() const noexcept {
    auto result = release_outcome::released;
    for (const auto& one : members) {
        if (one.outcome == release_outcome::already_lost) {
            return one.outcome;
        }
        if (one.outcome == release_outcome::unknown) {
            result = one.outcome;
        }
    }
    return result;
}

namespace {

/// Nothing once it was given back: what is kept then is for `loss_reason` alone.
[[nodiscard]] const detail::joint_hold* current(
    const std::shared_ptr<detail::joint_hold>& held) noexcept {
    return held && !held->members().front()->given_back() ? held.get() : nullptr;
}

}  // namespace

multi_lease::multi_lease() noexcept = default;
multi_lease::multi_lease(std::shared_ptr<detail::joint_hold> held) noexcept : held_{std::move(held)} {}
multi_lease::multi_lease(multi_lease&& other) noexcept = default;

multi_lease& multi_lease::operator=(multi_lease&& other) noexcept {
    if (this != &other) {
        release();
        held_ = std::move(other.held_);
    }
    return *this;
}

multi_lease::~multi_lease() {
    release();
}

multi_lease::operator bool() const noexcept {
    const auto* const held = current(held_);
    return held != nullptr && held->lost_member() == nullptr;
}

std::vector<multi_lease::member> multi_lease::members() const {
    std::vector<member> result;
    if (const auto* const held = current(held_)) {
        for (const auto& one : held->members()) {
            result.push_back({one->from()->address(), one->name(), one->token()});
        }
    }
    return result;
}

fencing_token multi_lease::token(std::string_view name) const noexcept {
    if (const auto* const held = current(held_)) {
        for (const auto& one : held->members()) {
            if (one->name() == name) {
                return one->token();
            }
        }
    }
    return {};
}

clock::time_point multi_lease::valid_until() const noexcept {
    if (current(held_) == nullptr) {
        return {};
    }
    auto first = clock::time_point::max();
    for (const auto& one : held_->members()) {
        first = std::min(first, one->valid_until());
    }
    return first;
}

std::chrono::nanoseconds multi_lease::remaining() const noexcept {
    return *this ? std::max(valid_until() - clock::now(), clock::duration::zero())
                 : clock::duration::zero();
}

std::stop_token multi_lease::lost() const noexcept {
    const auto* const held = current(held_);
    return held != nullptr ? held->lost() : std::stop_token{};
}

std::error_code multi_lease::loss_reason() const noexcept {
    const auto* const gone = held_ ? held_->lost_member() : nullptr;
    return gone == nullptr ? std::error_code{} : make_error_code(gone->loss());
}

void multi_lease::check() const {
    if (current(held_) == nullptr) {
        failure{errc::lost, "this lease is empty"}.raise("multi_lease");
    }
    if (const auto* const gone = held_->lost_member()) {
        failure{gone->loss(),
                detail::with_reason(*gone,
                                    "do not touch what it protects, nor what the others protect, "
                                    "any more")}
            .raise(detail::describe(*gone->from(), gone->name()));
    }
}

multi_release multi_lease::release() noexcept {
    multi_release result;
    if (current(held_) == nullptr) {
        return result;
    }
    const auto held = std::exchange(held_, nullptr);
    const auto& members = held->members();
    std::vector<std::shared_ptr<detail::hold>> lost;
    const auto outcomes = detail::release_together(members, clock::now() + held->release_timeout());
    for (std::size_t index = 0; index < members.size(); ++index) {
        result.members.push_back(
            {members[index]->from()->address(), members[index]->name(), outcomes[index]});
        if (outcomes[index] == release_outcome::already_lost) {
            if (members[index]->loss() == errc{}) {
                members[index]->set_loss(errc::lost, "the store no longer had it when it was released");
            }
            lost.push_back(members[index]);
        }
    }
    if (!lost.empty()) {  // kept, so that the holder can still ask why
        held_ = std::make_shared<detail::joint_hold>(std::move(lost), held->release_timeout());
    }
    return result;
}

}  // namespace holdfast
