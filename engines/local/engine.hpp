#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <common/ordered_calls.hpp>
#include <holdfast/engine.hpp>
#include <local/connection_pool.hpp>
#include <local/process_watch.hpp>
#include <local/wake_map.hpp>
#include <local/watcher.hpp>

namespace holdfast::engines::local {

/// Locks among the processes of one user on one host, in a directory.
///
///     locks.db   an SQLite database: the holds and their ends (see schema.hpp)
///     wake       shared memory: the waiters of each name (see wake_map.hpp)
///
/// All files, those of SQLite beside the database too, stay the same while anybody has them open (see
/// store_files.hpp).
///
/// Callers that may block do the work themselves; for others a pool of two threads does it. No
/// descriptor survives an exec. A forked child must not use the engine, nor needs to destroy it.
class local_engine final : public engine,
                           public watching,
                           public operators_view,
                           public latches,
                           public votes {
public:
    /// Throws `std::system_error` with an `errc`.
    local_engine(const std::string& directory, const process_ref& self, const time_base& base,
                 const client_identity& identity);
    ~local_engine() override;

    [[nodiscard]] const guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] std::string store_identity() const override;
    [[nodiscard]] abilities offers() noexcept override {
        return {.watching = this, .operators = this, .latches = this, .votes = this};
    }
    void attach(client_callbacks callbacks) override;

    void acquire(acquire_request request, call limits, completion<acquire_reply> done) override;
    void renew(std::vector<renew_request> batch, call limits,
               completion<std::vector<renew_reply>> done) override;
    void release(release_request request, call limits, completion<release_reply> done) override;
    void revoke(revoke_request request, call limits, completion<revoke_reply> done) override;
    void inspect(std::string name, call limits, completion<inspect_reply> done) override;
    void list(list_request request, call limits, completion<list_reply> done) override;
    void latch(latch_request request, call limits, completion<latch_reply> done) override;
    [[nodiscard]] store_instance instance(const std::string& name) const override;
    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, lock_kind,
                                                      std::function<void()> hint) override;

private:
    /// As `ordered_calls::dispatch`, with what the database throws in the answer.
    template <class Reply, class Lines, class Work>
    void dispatch(Lines lines, call limits, Reply blank, completion<Reply> done, Work work);

    [[nodiscard]] acquire_reply acquire_now(const acquire_request& request, clock::time_point deadline);
    [[nodiscard]] release_reply release_now(const release_request& request, clock::time_point deadline);
    [[nodiscard]] std::vector<renew_reply> renew_now(const std::vector<renew_request>& batch,
                                                     clock::time_point deadline);
    [[nodiscard]] latch_reply latch_now(const latch_request& request, clock::time_point deadline);
    void follow_holders(const std::string& name, std::vector<process_ref> holders);
    [[nodiscard]] std::vector<process_ref> find_holders(const std::string& name);
    void tidy_now_and_then();
    void tidy_waiters_now_and_then();
    void tell_client();

    const process_ref self_;
    const client_identity identity_;
    const std::string address_;
    const guarantees promises_;
    std::atomic<bool> stopping_{};
    std::atomic<std::uint32_t> grants_{};
    std::atomic<clock::rep> next_waiter_check_{};
    std::shared_ptr<wake_map> wake_map_;
    connection_pool connections_;
    std::mutex callbacks_mutex_;
    client_callbacks callbacks_;
    std::unique_ptr<watcher> watcher_;
    std::shared_ptr<process_watch> processes_;
    ordered_calls calls_{2};
};

}  // namespace holdfast::engines::local
