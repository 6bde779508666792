#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/quorum.hpp>
#include <quorum/parts.hpp>

namespace holdfast::engines::quorums {

/// A store made of stores. `core::quorum_round` and `core::quorum_tally` decide, the files named
/// `*_vote` ask the members, and `quorum_parts` has what is remembered between requests.
///
/// Thread safety: as every engine.
class quorum_engine final : public engine,
                            public watching,
                            public operators_view,
                            public examination,
                            public votes {
public:
    quorum_engine(std::vector<std::unique_ptr<engine>> members, quorum_options options,
                  const std::vector<std::string>& addresses, std::vector<std::string> identities);
    ~quorum_engine() override;

    /// From now on a thread tells members again what they did not confirm to be rid of. Otherwise they
    /// are told with the next request, or at the end. Called once, before any request.
    void repeat_releases() { parts_.leftovers.repeat_by_thread(); }
    /// A thread that works for members. It is stopped before they are destroyed.
    void add_helper(threading::jthread helper) { helper_ = std::move(helper); }

    [[nodiscard]] const guarantees& promises() const noexcept override {
        return parts_.members.promises();
    }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] std::string store_identity() const override { return identity_; }
    /// What all members offer, as far as it survives being put to the vote.
    [[nodiscard]] abilities offers() noexcept override { return offers_; }
    void attach(client_callbacks callbacks) override;
    void acquire(acquire_request request, call limits, completion<acquire_reply> done) override;
    void renew(std::vector<renew_request> batch, call limits,
               completion<std::vector<renew_reply>> done) override;
    void release(release_request request, call limits, completion<release_reply> done) override;
    void revoke(revoke_request request, call limits, completion<revoke_reply> done) override;
    void inspect(std::string name, call limits, completion<inspect_reply> done) override;
    void list(list_request request, call limits, completion<list_reply> done) override;
    void examine(call limits, completion<examine_reply> done) override;
    [[nodiscard]] std::unique_ptr<subscription> watch(std::string name, lock_kind kind,
                                                      std::function<void()> hint) override;
    /// Which of its members answer says nothing about a quorum that is a member of another.
    [[nodiscard]] store_instance instance(const std::string&) const override { return {}; }

private:
    /// False after it has answered that the request is bad, or too late.
    template <class Reply>
    [[nodiscard]] bool accepts(failure bad, const call& limits, const completion<Reply>& done) const;

    const std::string address_;
    const std::string identity_;
    quorum_parts parts_;
    abilities offers_;
    threading::jthread helper_;
};

}  // namespace holdfast::engines::quorums
