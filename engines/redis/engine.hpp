#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include <common/callback_gate.hpp>
#include <holdfast/engine.hpp>
#include <redis/address.hpp>
#include <redis/card.hpp>
#include <redis/catalogue.hpp>
#include <redis/script_runner.hpp>
#include <redis/topology/router.hpp>
#include <redis/translation.hpp>
#include <redis/turns.hpp>
#include <redis/unsettled.hpp>
#include <redis/waiting_line.hpp>
#include <redis/watches.hpp>

namespace holdfast::engines::redis {

/// Locks in Redis, in Redisson's layout. See docs/redis.md.
///
/// Every operation is one script, run on the server that is responsible for the name's slot. The
/// engine itself remembers only its listeners: everything about locks is in the store.
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
    redis_engine(redis::address store, const client_identity& identity);
    redis_engine(const redis_engine&) = delete;
    redis_engine& operator=(const redis_engine&) = delete;
    ~redis_engine() override;

    [[nodiscard]] const guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return store_.text; }
    [[nodiscard]] std::string store_identity() const override { return store_.identity; }
    [[nodiscard]] abilities offers() noexcept override {
        return {this, this, this, this, this, this, this};
    }
    void attach(client_callbacks callbacks) override;

    void acquire(acquire_request request, call limits, completion<acquire_reply> done) override;
    [[nodiscard]] bool acquires_together(const std::vector<std::string>& names) const override;
    void acquire_all(std::vector<acquire_request> all, call limits,
                     completion<acquire_all_reply> done) override;
    void renew(std::vector<renew_request> batch, call limits,
               completion<std::vector<renew_reply>> done) override;
    void release(release_request request, call limits, completion<release_reply> done) override;
    void revoke(revoke_request request, call limits, completion<revoke_reply> done) override;
    void inspect(std::string name, call limits, completion<inspect_reply> done) override;
    void list(list_request request, call limits, completion<list_reply> done) override;
    void latch(latch_request request, call limits, completion<latch_reply> done) override;
    void examine(call limits, completion<examine_reply> done) override;
    [[nodiscard]] store_instance instance(const std::string& name) const override;
    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, lock_kind kind,
                                                      std::function<void()> hint) override;
    [[nodiscard]] bool serves_plain_locks() const noexcept override { return true; }
    void attend(const std::string& name, lock_kind kind, const owner_id& owner,
                idle_thread& thread) override;

private:
    [[nodiscard]] failure check_key(std::string_view name, lock_kind kind) const;
    [[nodiscard]] std::uint16_t slot_for(const std::string& key) const noexcept;
    [[nodiscard]] acquire_reply decode_grant(const value& answer, const acquire_request& request);
    void acquire_confirmed(acquire_request request, script_call script, call limits,
                           completion<acquire_reply> done);
    void settle_unconfirmed(const acquire_request& request, std::int64_t confirmed, call limits,
                            completion<acquire_reply> done);
    void take_leave();
    void listen_for_revocations();
    void cannot_listen(const std::string& channel, const std::string& words);
    void cannot_tell(const failure& why);
    void settle_in_line(const acquire_request& request, acquire_reply reply, bool listened,
                        const completion<acquire_reply>& done);
    void on_grant(const std::string& name, std::string_view message);
    /// Tells the client of the turns of owners that wait for this name.
    [[nodiscard]] waiting_line::turn_told turn_teller(const std::string& name);

    redis::address store_;
    client_identity identity_;
    guarantees promises_;
    dialect dialect_;
    client_callbacks callbacks_;
    std::shared_ptr<watches> watches_;
    /// A watch may outlive the engine.
    std::shared_ptr<turns> turns_;
    std::unique_ptr<router> router_;
    std::shared_ptr<const catalogue> catalogue_;

    std::unique_ptr<script_runner> scripts_;
    std::unique_ptr<client_card> card_;
    std::atomic<bool> listens_{false};
    std::atomic<bool> cannot_listen_{false};
    std::atomic<bool> cannot_tell_{false};
    std::mutex guard_;
    waiting_line line_;
    unsettled_owners unsettled_;
    std::unique_ptr<watches::listening> revocations_;
};

}  // namespace holdfast::engines::redis
