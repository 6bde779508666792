#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/detail/keyed_lanes.hpp>

namespace holdfast {
inline namespace v0 {

/// Runs operations of one key one at a time, in the order they were submitted, and those of different
/// keys in parallel on a fixed number of threads. In this process only: where all writes to a thing
/// come through one process, it takes the place of a lock, and nobody ever waits with a thread.
///
/// Room: at most `most_per_key` operations of a key and `most_in_all` of all keys wait. Then `submit`
/// waits for room, and `try_submit` is refused. `submit` from inside an operation does not wait: it
/// could wait for itself, and throws `errc::busy` instead.
///
/// Errors: what an operation throws is in its future. After `close`, submitting throws
/// `errc::shut_down`.
///
/// Lifetime: `close`, and the destructor, refuse what is new and run all that was accepted. `cancel`
/// drops what has not begun (its futures get `errc::cancelled`) and waits for what has. In a forked
/// child it has no threads: `submit` throws `errc::forked`, and everything else, the destructor too,
/// does nothing. What the parent had submitted goes on in the parent.
/// Thread safety: all functions may be called from any thread.
///
/// Misuse:
///     `close`, `cancel` or the destructor inside an operation   aborts
///     an operation waits for another of its key                 waits for itself: that begins later
class keyed_executor {
public:
    explicit keyed_executor(const keyed_executor_options& options = {})
        : lanes_{"keyed_executor", options, 1,
                 [](const std::string&, std::vector<detail::keyed_lanes::work> batch) {
                     for (auto& one : batch) {
                         static_cast<job&>(*one).run();
                     }
                 }} {}

    /// Waits for room.
    template <class Operation>
    [[nodiscard]] auto submit(std::string_view key, Operation operation)
        -> std::future<std::invoke_result_t<Operation&>> {
        return *submit(key, std::move(operation), std::stop_token{});
    }
    /// Empty when `stop` was triggered first.
    template <class Operation>
    [[nodiscard]] auto submit(std::string_view key, Operation operation, std::stop_token stop)
        -> std::optional<std::future<std::invoke_result_t<Operation&>>> {
        return admit(std::move(operation), [&](detail::keyed_lanes::work& queued) {
            return lanes_.push(key, queued, std::move(stop));
        });
    }
    /// Empty when there is no room.
    template <class Operation>
    [[nodiscard]] auto try_submit(std::string_view key, Operation operation)
        -> std::optional<std::future<std::invoke_result_t<Operation&>>> {
        return admit(std::move(operation),
                     [&](detail::keyed_lanes::work& queued) { return lanes_.try_push(key, queued); });
    }

    void close() { lanes_.close(); }
    /// How many were dropped.
    std::size_t cancel() { return lanes_.cancel(); }
    /// How many wait to be begun.
    [[nodiscard]] std::size_t waiting() const { return lanes_.waiting(); }

private:
    class job : public detail::keyed_work {
    public:
        virtual void run() noexcept = 0;
    };

    template <class Operation>
    class job_of final : public job {
    public:
        using result = std::invoke_result_t<Operation&>;

        explicit job_of(Operation operation) : operation_{std::move(operation)} {}
        [[nodiscard]] std::future<result> answer() { return promise_.get_future(); }
        void run() noexcept override {
            try {
                if constexpr (std::is_void_v<result>) {
                    std::invoke(operation_);
                    promise_.set_value();
                } else {
                    promise_.set_value(std::invoke(operation_));
                }
            } catch (...) {
                promise_.set_exception(std::current_exception());
            }
        }
        void drop(const std::exception_ptr& why) noexcept override { promise_.set_exception(why); }

    private:
        Operation operation_;
        std::promise<result> promise_;
    };

    template <class Operation, class Push>
    [[nodiscard]] auto admit(Operation operation, const Push& push) const
        -> std::optional<std::future<std::invoke_result_t<Operation&>>> {
        auto made = std::make_unique<job_of<Operation>>(std::move(operation));
        auto answer = made->answer();
        detail::keyed_lanes::work queued{std::move(made)};
        const auto outcome = push(queued);
        if (outcome == detail::keyed_lanes::admission::accepted) {
            return answer;
        }
        lanes_.raise_refusal(outcome);
        return std::nullopt;
    }

    detail::keyed_lanes lanes_;
};

/// A `keyed_executor` for operations that are cheaper together: what waits for one key is passed to
/// the handler at once, in order, at most `most_at_once` of them. Several operations, one commit.
///
///     keyed_batcher<order, receipt> orders{{}, 64,
///         [](const std::string& sku, std::span<order> all) { return book_in_one_transaction(sku, all);
///         }};
///     auto answer = orders.submit("sku:101", order);
///
/// The handler returns one result for each operation, in the same order. If it throws, all of them
/// get its exception: so it should do all or nothing. Without a handler the constructor throws
/// `errc::invalid_argument`. Everything else is as with `keyed_executor`.
template <class Operation, class Result>
class keyed_batcher {
public:
    using handler = std::function<std::vector<Result>(const std::string& key, std::span<Operation>)>;

    keyed_batcher(const keyed_executor_options& options, std::size_t most_at_once, handler handle)
        : handle_{std::move(handle)},
          lanes_{"keyed_batcher", options, most_at_once,
                 [this](const std::string& key, std::vector<detail::keyed_lanes::work> batch) {
                     run(key, batch);
                 }} {
        if (!handle_) {
            detail::raise_no_handler();
        }
    }

    /// Waits for room.
    [[nodiscard]] std::future<Result> submit(std::string_view key, Operation operation) {
        return *submit(key, std::move(operation), std::stop_token{});
    }
    /// Empty when `stop` was triggered first.
    [[nodiscard]] std::optional<std::future<Result>> submit(std::string_view key, Operation operation,
                                                            std::stop_token stop) {
        return admit(std::move(operation), [&](detail::keyed_lanes::work& queued) {
            return lanes_.push(key, queued, std::move(stop));
        });
    }
    /// Empty when there is no room.
    [[nodiscard]] std::optional<std::future<Result>> try_submit(std::string_view key,
                                                                Operation operation) {
        return admit(std::move(operation),
                     [&](detail::keyed_lanes::work& queued) { return lanes_.try_push(key, queued); });
    }

    void close() { lanes_.close(); }
    std::size_t cancel() { return lanes_.cancel(); }
    [[nodiscard]] std::size_t waiting() const { return lanes_.waiting(); }

private:
    struct entry final : detail::keyed_work {
        explicit entry(Operation asked) : operation{std::move(asked)} {}
        void drop(const std::exception_ptr& why) noexcept override { promise.set_exception(why); }

        Operation operation;
        std::promise<Result> promise;
    };

    void run(const std::string& key, std::vector<detail::keyed_lanes::work>& batch) noexcept {
        std::vector<Result> results;
        try {
            results = handled(key, batch);
        } catch (...) {
            for (auto& one : batch) {
                one->drop(std::current_exception());
            }
            return;
        }
        for (std::size_t index = 0; index < batch.size(); ++index) {
            try {
                static_cast<entry&>(*batch[index]).promise.set_value(std::move(results[index]));
            } catch (...) {
                batch[index]->drop(std::current_exception());
            }
        }
    }

    [[nodiscard]] std::vector<Result> handled(const std::string& key,
                                              std::vector<detail::keyed_lanes::work>& batch) {
        std::vector<Operation> operations;
        operations.reserve(batch.size());
        for (auto& one : batch) {
            operations.push_back(std::move(static_cast<entry&>(*one).operation));
        }
        auto results = handle_(key, std::span<Operation>{operations});
        if (results.size() != batch.size()) {
            throw std::length_error{"the handler must return one result for each operation"};
        }
        return results;
    }

    template <class Push>
    [[nodiscard]] std::optional<std::future<Result>> admit(Operation operation,
                                                           const Push& push) const {
        auto made = std::make_unique<entry>(std::move(operation));
        auto answer = made->promise.get_future();
        detail::keyed_lanes::work queued{std::move(made)};
        const auto outcome = push(queued);
        if (outcome == detail::keyed_lanes::admission::accepted) {
            return answer;
        }
        lanes_.raise_refusal(outcome);
        return std::nullopt;
    }

    handler handle_;
    detail::keyed_lanes lanes_;
};

}  // namespace v0
}  // namespace holdfast
