#include <holdfast/testing/forwarding_engine.hpp>

#include "stores.hpp"

namespace holdfast::testing {

namespace {

/// A store that keeps names with different first letters in different places, as a cluster would.
class divided_engine final : public forwarding_engine, public engines::joint_locking {
public:
    using forwarding_engine::forwarding_engine;

    [[nodiscard]] engines::abilities offers() noexcept override {
        auto offered = inner().offers();
        offered.joint_locking = this;
        return offered;
    }
    [[nodiscard]] bool acquires_together(const std::vector<std::string>& names) const override {
        return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
            return name.front() == names.front().front();
        });
    }
    void acquire_all(std::vector<engines::acquire_request> all, engines::call how,
                     engines::completion<engines::acquire_all_reply> done) override {
        for (const auto& one : all) {
            EXPECT_EQ(one.name.front(), all.front().name.front()) << "not in one place";
        }
        inner().offers().joint_locking->acquire_all(std::move(all), how, std::move(done));
    }
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
