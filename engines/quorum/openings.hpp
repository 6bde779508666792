#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/engine.hpp>

namespace holdfast::engines::quorums {

/// The result of opening one store.
struct attempt {
    std::unique_ptr<engine> store;
    failure error;
    /// It has no result yet.
    bool under_way{};
};

/// Stores that are being opened, all at the same time, each by a thread of its own. A thread ends by
/// itself when its store answers or the attempt times out; nobody has to wait for it.
///
/// Thread safety: all functions may be called from any thread.
class openings : public std::enable_shared_from_this<openings> {
public:
    openings(std::vector<std::string> stores, client_identity identity)
        : stores_{std::move(stores)}, identity_{std::move(identity)}, results_(stores_.size()) {}

    void begin(std::size_t index);

    /// Until all are open or have failed. Once a majority is open the others are given until
    /// `deadline`: those that have not answered then are as good as away.
    [[nodiscard]] std::vector<attempt> first_results(clock::time_point deadline);

    /// The next attempt that has ended, and its store's index. Empty when it is time to stop or `until`
    /// has come.
    [[nodiscard]] std::optional<std::pair<std::size_t, attempt>> next(const std::stop_token& stop,
                                                                      clock::time_point until);

    /// What is opened from now on is closed again.
    void abandon();

private:
    const std::vector<std::string> stores_;
    const client_identity identity_;
    std::mutex guard_;
    std::condition_variable_any changed_;
    bool abandoned_{};
    std::vector<std::optional<attempt>> results_;
};

}  // namespace holdfast::engines::quorums
