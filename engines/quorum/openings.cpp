#include <quorum/openings.hpp>

#include <common/quiet_thread.hpp>
#include <core/quorum.hpp>
#include <holdfast/quorum.hpp>

#include <algorithm>
#include <exception>
#include <system_error>

namespace holdfast::engines::quorums {

namespace {

/// What went wrong, without what is said around it: whose store it is, and the kind of error.
[[nodiscard]] std::string reason_in(const std::system_error& error, const std::string& shown) {
    std::string text = error.what();
    const auto ending = ": " + error.code().message();
    if (text.ends_with(ending)) {
        text.resize(text.size() - ending.size());
    }
    const auto introduction = shown + ": ";
    const auto found = text.find(introduction);
    return found == std::string::npos ? text : text.substr(found + introduction.size());
}

[[nodiscard]] attempt try_open(const std::string& address, const client_identity& identity) {
    attempt result;
    try {
        result.store = open(address, identity);
    } catch (const std::system_error& error) {
        const bool ours = error.code().category() == error_category();
        result.error = {ours ? static_cast<errc>(error.code().value()) : errc::store_error,
                        reason_in(error, summarise_address(address).shown)};
    } catch (const std::exception& error) {
        result.error = {errc::store_error, error.what()};
    }
    return result;
}

}  // namespace

void openings::begin(std::size_t index) {
    quiet_thread([self = shared_from_this(), index] {
        auto result = try_open(self->stores_[index], self->identity_);
        {
            const std::lock_guard lock{self->guard_};
            if (!self->abandoned_) {
                self->results_[index] = std::move(result);
            }
        }
        self->changed_.notify_all();
    }).detach();
}

std::vector<attempt> openings::first_results(clock::time_point deadline) {
    std::unique_lock lock{guard_};
    const auto over = [&](bool enough) {
        std::size_t ended = 0;
        std::size_t open = 0;
        for (const auto& each : results_) {
            ended += each ? 1 : 0;
            open += each && each->store ? 1 : 0;
        }
        return ended == results_.size() || (enough && open >= core::majority_of(results_.size()));
    };
    if (!changed_.wait_until(lock, deadline, [&] { return over(false); })) {
        changed_.wait(lock, [&] { return over(true); });
    }
    std::vector<attempt> all;
    for (auto& each : results_) {
        all.push_back(each ? *std::exchange(each, std::nullopt)
                           : attempt{nullptr, {errc::store_unavailable, "has not answered yet"}, true});
    }
    return all;
}

std::optional<std::pair<std::size_t, attempt>> openings::next(const std::stop_token& stop,
                                                              clock::time_point until) {
    std::unique_lock lock{guard_};
    const auto ended = [this] {
        return std::find_if(results_.begin(), results_.end(),
                            [](const auto& each) { return each.has_value(); });
    };
    changed_.wait_until(lock, stop, until, [&] { return ended() != results_.end(); });
    const auto found = ended();
    if (stop.stop_requested() || found == results_.end()) {
        return std::nullopt;
    }
    return std::pair{static_cast<std::size_t>(found - results_.begin()),
                     *std::exchange(*found, std::nullopt)};
}

void openings::abandon() {
    std::vector<std::optional<attempt>> dropped;
    const std::lock_guard lock{guard_};
    abandoned_ = true;
    dropped.swap(results_);
    results_.resize(dropped.size());
}

}  // namespace holdfast::engines::quorums
