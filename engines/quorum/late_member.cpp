#include <quorum/late_member.hpp>

#include <quorum/members.hpp>

#include <utility>

namespace holdfast::engines::quorums {

/// What a watch on a store that is not there yet waits with.
struct late_member::late_watch {
    std::string name;
    lock_kind kind{};
    std::function<void()> hint;
    std::mutex guard;
    std::unique_ptr<subscription> real;
    bool ended{};

    void begin(engine& store) {
        {
            const std::lock_guard lock{guard};
            if (ended) {
                return;
            }
        }
        auto watch = store.offers().watching->watch(name, kind, hint);
        const bool active = watch->active();
        {
            const std::lock_guard lock{guard};
            if (!ended) {
                real = std::move(watch);
            }
        }
        if (active) {
            hint();
        }
    }
};

class late_member::late_subscription final : public subscription {
public:
    explicit late_subscription(std::shared_ptr<late_watch> watch) : watch_{std::move(watch)} {}
    ~late_subscription() override {
        std::unique_ptr<subscription> last;
        const std::lock_guard lock{watch_->guard};
        watch_->ended = true;
        last = std::move(watch_->real);
    }
    [[nodiscard]] bool active() const noexcept override {
        const std::lock_guard lock{watch_->guard};
        return watch_->real && watch_->real->active();
    }

private:
    std::shared_ptr<late_watch> watch_;
};

late_member::late_member(std::string address, std::string identity, engine& like, failure reason)
    : address_{std::move(address)},
      identity_{std::move(identity)},
      assumed_{like.promises()},
      reason_{std::move(reason)} {
    const auto offered = like.offers();
    offers_.watching = offered.watching != nullptr ? this : nullptr;
    offers_.operators = offered.operators != nullptr ? this : nullptr;
    offers_.votes = offered.votes != nullptr ? this : nullptr;
}

late_member::~late_member() = default;

void late_member::adopt(std::unique_ptr<engine> store) {
    std::vector<std::weak_ptr<late_watch>> waiting;
    engine* opened{};
    {
        const std::lock_guard lock{guard_};
        owned_ = std::move(store);
        opened = owned_.get();
        if (callbacks_.holds_may_have_changed || callbacks_.turn_of) {
            opened->attach(callbacks_);
        }
        opened_.store(opened, std::memory_order_release);
        waiting = std::exchange(watches_, {});
    }
    for (const auto& each : waiting) {
        if (const auto watch = each.lock()) {
            watch->begin(*opened);
        }
    }
}

void late_member::explain(failure reason) {
    const std::lock_guard lock{guard_};
    reason_ = std::move(reason);
}

failure late_member::trouble() const {
    const std::lock_guard lock{guard_};
    return {errc::store_unavailable, reason_.detail};
}

template <class Reply>
engine* late_member::store_or_refuse(const completion<Reply>& done) const {
    auto* const there = store();
    if (there == nullptr) {
        Reply reply;
        reply.error = trouble();
        done(std::move(reply));
    }
    return there;
}

void late_member::attach(client_callbacks callbacks) {
    const std::lock_guard lock{guard_};
    callbacks_ = std::move(callbacks);
    if (owned_) {
        owned_->attach(callbacks_);
    }
}

void late_member::acquire(acquire_request request, call limits, completion<acquire_reply> done) {
    if (auto* const there = store_or_refuse(done)) {
        there->acquire(std::move(request), limits, std::move(done));
    }
}

void late_member::renew(std::vector<renew_request> batch, call limits,
                        completion<std::vector<renew_reply>> done) {
    if (auto* const there = store()) {
        there->renew(std::move(batch), limits, std::move(done));
        return;
    }
    done(std::vector<renew_reply>(batch.size(), {renew_reply::outcome::failed, trouble()}));
}

void late_member::release(release_request request, call limits, completion<release_reply> done) {
    if (auto* const there = store_or_refuse(done)) {
        there->release(std::move(request), limits, std::move(done));
    }
}

void late_member::revoke(revoke_request request, call limits, completion<revoke_reply> done) {
    if (auto* const there = store_or_refuse(done)) {
        there->offers().operators->revoke(std::move(request), limits, std::move(done));
    }
}

void late_member::inspect(std::string name, call limits, completion<inspect_reply> done) {
    if (auto* const there = store_or_refuse(done)) {
        there->offers().operators->inspect(std::move(name), limits, std::move(done));
    }
}

void late_member::list(list_request request, call limits, completion<list_reply> done) {
    if (auto* const there = store_or_refuse(done)) {
        there->offers().operators->list(std::move(request), limits, std::move(done));
    }
}

void late_member::examine(call limits, completion<examine_reply> done) {
    auto* const there = store_or_refuse(done);
    if (there == nullptr) {
        return;
    }
    if (auto* const inside = there->offers().examination) {
        inside->examine(limits, std::move(done));
    } else {
        done({});
    }
}

store_instance late_member::instance(const std::string& name) const {
    auto* const there = store();
    return there != nullptr ? instance_of(*there, name) : store_instance{};
}

std::unique_ptr<subscription> late_member::watch(std::string name, lock_kind kind,
                                                 std::function<void()> hint) {
    const auto waiting = std::make_shared<late_watch>();
    waiting->name = std::move(name);
    waiting->kind = kind;
    waiting->hint = std::move(hint);
    {
        const std::lock_guard lock{guard_};
        if (!owned_) {
            std::erase_if(watches_, [](const auto& each) { return each.expired(); });
            watches_.push_back(waiting);
            return std::make_unique<late_subscription>(waiting);
        }
    }
    return store()->offers().watching->watch(std::move(waiting->name), kind, std::move(waiting->hint));
}

}  // namespace holdfast::engines::quorums
