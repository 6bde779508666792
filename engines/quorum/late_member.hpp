#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>

namespace holdfast::engines::quorums {

/// A member that could not be opened when the quorum was. Until it is, it answers `store_unavailable`
/// at once; afterwards it is that store.
///
/// Thread safety: as every engine; `adopt` and `explain` may be called beside everything else.
class late_member final : public engine,
                          public watching,
                          public operators_view,
                          public examination,
                          public votes {
public:
    /// `like`: a member that is there. This one promises and offers what that one does.
    late_member(std::string address, std::string identity, engine& like, failure reason);
    ~late_member() override;

    /// The store is there. Watches begin to flow.
    void adopt(std::unique_ptr<engine> store);
    /// Why it still is not.
    void explain(failure reason);

    [[nodiscard]] const guarantees& promises() const noexcept override { return assumed_; }
    [[nodiscard]] abilities offers() noexcept override { return offers_; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] std::string store_identity() const override { return identity_; }
    void attach(client_callbacks callbacks) override;
    void acquire(acquire_request request, call limits, completion<acquire_reply> done) override;
    void renew(std::vector<renew_request> batch, call limits,
               completion<std::vector<renew_reply>> done) override;
    void release(release_request request, call limits, completion<release_reply> done) override;
    void revoke(revoke_request request, call limits, completion<revoke_reply> done) override;
    void inspect(std::string name, call limits, completion<inspect_reply> done) override;
    void list(list_request request, call limits, completion<list_reply> done) override;
    void examine(call limits, completion<examine_reply> done) override;
    [[nodiscard]] store_instance instance(const std::string& name) const override;
    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, lock_kind kind,
                                                      std::function<void()> hint) override;

private:
    struct late_watch;
    class late_subscription;

    [[nodiscard]] engine* store() const noexcept { return opened_.load(std::memory_order_acquire); }
    [[nodiscard]] failure trouble() const;
    /// Null after it has answered that the store is not there.
    template <class Reply>
    [[nodiscard]] engine* store_or_refuse(const completion<Reply>& done) const;

    const std::string address_;
    const std::string identity_;
    const guarantees assumed_;
    abilities offers_{.examination = this};
    mutable std::mutex guard_;
    failure reason_;
    client_callbacks callbacks_;
    std::vector<std::weak_ptr<late_watch>> watches_;
    std::unique_ptr<engine> owned_;
    std::atomic<engine*> opened_{};
};

}  // namespace holdfast::engines::quorums
