#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <common/callback_gate.hpp>
#include <holdfast/engine.hpp>
#include <redis/address.hpp>
#include <redis/catalogue.hpp>
#include <redis/topology/router.hpp>
#include <redis/translation.hpp>
#include <redis/turns.hpp>
#include <redis/unsettled.hpp>
#include <redis/watches.hpp>

namespace holdfast::engines::redis {

/// Locks in Redis, in Redisson's layout. See docs/redis.md.
///
/// Every operation is one script, run on the server that is responsible for the name's slot. What the
/// engine itself remembers is only whom to tell what: everything about locks is in the store.
class redis_engine final : public engine,
                           public watching,
                           public operators_view,
                           public examination,
                           public latches,
                           public joint_locking,
                           public lines,
                           public votes {
public:
    /// Throws when the store cannot be used.
    redis_engine(redis::address where, const client_identity& identity);
    redis_engine(const redis_engine&) = delete;
    redis_engine& operator=(const redis_engine&) = delete;
    ~redis_engine() override;

    [[nodiscard]] const guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return where_.text; }
    [[nodiscard]] std::string store_identity() const override { return where_.identity; }
    [[nodiscard]] abilities offers() noexcept override {
        return {this, this, this, this, this, this, this};
    }
    void attach(client_callbacks callbacks) override;

    void acquire(acquire_request request, call how, completion<acquire_reply> done) override;
    [[nodiscard]] bool acquires_together(const std::vector<std::string>& names) const override;
    void acquire_all(std::vector<acquire_request> all, call how,
                     completion<acquire_all_reply> done) override;
    void renew(std::vector<renew_request> batch, call how,
               completion<std::vector<renew_reply>> done) override;
    void release(release_request request, call how, completion<release_reply> done) override;
    void revoke(revoke_request request, call how, completion<revoke_reply> done) override;
    void inspect(std::string name, call how, completion<inspect_reply> done) override;
    void list(list_request request, call how, completion<list_reply> done) override;
    void latch(latch_request request, call how, completion<latch_reply> done) override;
    void examine(call how, completion<examine_reply> done) override;
    [[nodiscard]] store_instance instance(const std::string& name) const override;
    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, lock_kind kind,
                                                      std::function<void()> hint) override;
    [[nodiscard]] bool serves_plain_locks() const noexcept override { return true; }
    void attend(const std::string& name, lock_kind kind, const owner_id& owner,
                idle_thread& thread) override;

private:
    using answered = std::function<void(connection::result)>;

    [[nodiscard]] failure check_key(std::string_view name, lock_kind kind) const;
    [[nodiscard]] std::uint16_t slot_for(const std::string& key) const noexcept;
    /// Runs a script; the first reply is its answer. Tells the server its text if it does not know it.
    void run(script_call what, std::uint16_t slot, call how, answered done,
             router::lane lane = router::lane::common);
    void acquire_confirmed(acquire_request request, script_call script, call how,
                           completion<acquire_reply> done);
    void settle_unconfirmed(const acquire_request& request, std::int64_t confirmed, call how,
                            completion<acquire_reply> done);
    struct renewal_round;
    void renew_together(const std::shared_ptr<renewal_round>& all, std::vector<std::size_t> items,
                        call how);
    void write_card(std::chrono::milliseconds ttl);
    void take_leave();
    void listen_for_revocations();
    void cannot_listen(const std::string& channel, const std::string& words);
    void cannot_tell(const failure& why);
    [[nodiscard]] std::int64_t stand_in_line(const acquire_request& request, const std::string& key);
    void settle_in_line(const acquire_request& asked, acquire_reply reply, bool listened,
                        const completion<acquire_reply>& done);
    [[nodiscard]] bool missed_nothing(const owner_id& owner);
    void leave_line(const owner_id& owner);
    void on_turn(const std::string& name, const owner_id& owner, std::string_view message);
    void on_grant(const std::string& name, std::string_view message);

    redis::address where_;
    client_identity identity_;
    guarantees promises_;
    dialect dialect_;
    client_callbacks callbacks_;
    std::shared_ptr<watches> watches_;
    /// A watch may outlive the engine.
    std::shared_ptr<turns> turns_;
    std::unique_ptr<router> router_;
    std::shared_ptr<const catalogue> catalogue_;

    /// Scripts that were sent, or are to be, and are not answered.
    std::atomic<int> under_way_{0};
    /// Whether somebody may see locks of ours when we are gone.
    std::atomic<bool> leaves_locks_{false};
    /// When the card has to be written again, on our clock.
    std::atomic<clock::time_point> card_due_;
    /// Of all locks that were asked for.
    std::atomic<std::chrono::milliseconds> longest_ttl_{};
    std::atomic<bool> listens_{false};
    std::atomic<bool> cannot_listen_{false};
    std::atomic<bool> cannot_tell_{false};
    std::mutex guard_;
    /// One of ours that stands in a line, with a channel of its own.
    struct place {
        std::unique_ptr<watches::listening> channel;
        /// When its last request was made; in nanoseconds also the number of the question.
        clock::time_point asked_at;
        /// Its channel flows.
        bool began{};
        /// Whether the server knew that it listens when it answered its first question.
        std::optional<bool> listened{};
    };
    std::map<owner_id, place> in_line_;
    unsettled_owners unsettled_;
    std::unique_ptr<watches::listening> revocations_;
};

}  // namespace holdfast::engines::redis
