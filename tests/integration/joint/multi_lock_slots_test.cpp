#include "stores.hpp"

namespace holdfast::testing {

namespace {

using engines::call;
using engines::completion;

/// A store that keeps names with different first letters in different places, as a cluster would.
class divided_engine final : public engines::engine {
public:
    explicit divided_engine(std::unique_ptr<engine> inner) : inner_{std::move(inner)} {}

    [[nodiscard]] bool acquires_together(const std::vector<std::string>& names) const override {
        return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
            return name.front() == names.front().front();
        });
    }
    void acquire_all(std::vector<engines::acquire_request> all, call how,
                     completion<engines::acquire_all_reply> done) override {
        for (const auto& one : all) {
            EXPECT_EQ(one.name.front(), all.front().name.front()) << "not in one place";
        }
        inner_->acquire_all(std::move(all), how, std::move(done));
    }

    [[nodiscard]] const engines::guarantees& promises() const noexcept override {
        return inner_->promises();
    }
    [[nodiscard]] const std::string& address() const noexcept override { return inner_->address(); }
    void attach(engines::client_callbacks callbacks) override { inner_->attach(std::move(callbacks)); }
    void acquire(engines::acquire_request request, call how,
                 completion<engines::acquire_reply> done) override {
        inner_->acquire(std::move(request), how, std::move(done));
    }
    void renew(std::vector<engines::renew_request> batch, call how,
               completion<std::vector<engines::renew_reply>> done) override {
        inner_->renew(std::move(batch), how, std::move(done));
    }
    void release(engines::release_request request, call how,
                 completion<engines::release_reply> done) override {
        inner_->release(std::move(request), how, std::move(done));
    }
    void revoke(engines::revoke_request request, call how,
                completion<engines::revoke_reply> done) override {
        inner_->revoke(std::move(request), how, std::move(done));
    }
    void inspect(std::string name, call how, completion<engines::inspect_reply> done) override {
        inner_->inspect(std::move(name), how, std::move(done));
    }
    void list(engines::list_request request, call how, completion<engines::list_reply> done) override {
        inner_->list(std::move(request), how, std::move(done));
    }
    void latch(engines::latch_request request, call how,
               completion<engines::latch_reply> done) override {
        inner_->latch(std::move(request), how, std::move(done));
    }
    [[nodiscard]] std::unique_ptr<engines::subscription> watch(std::string name, lock_kind kind,
                                                               std::function<void()> hint) override {
        return inner_->watch(std::move(name), kind, std::move(hint));
    }

private:
    std::unique_ptr<engine> inner_;
};

/// How many requests it takes to get these names.
[[nodiscard]] std::uint64_t requests_for(const std::vector<std::string>& names) {
    const auto identity = engines::make_identity();
    client divided{std::make_unique<divided_engine>(engines::open(fresh_store(), identity)), identity};
    const auto held = multi_lock{divided, names}.acquire();
    EXPECT_EQ(held.members().size(), names.size());
    return divided.requests();
}

TEST(multi_lock_slots, names_in_one_place_are_asked_for_together) {
    EXPECT_EQ(requests_for({"a1", "a2", "a3"}), 1U);
    EXPECT_EQ(requests_for({"a1", "a2", "a3", "b1", "b2"}), 2U);
    EXPECT_EQ(requests_for({"a1", "b1", "b2", "c1"}), 3U);
    EXPECT_EQ(requests_for({"a", "b", "c"}), 3U);
}

}  // namespace

}  // namespace holdfast::testing
