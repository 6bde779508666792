#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <runtime/store_access.hpp>

namespace holdfast::detail {

namespace {

class idle_engine final : public engines::engine {
public:
    explicit idle_engine(bool& gone) : gone_{gone} {}
    idle_engine(const idle_engine&) = delete;
    idle_engine& operator=(const idle_engine&) = delete;
    ~idle_engine() override { gone_ = true; }
    [[nodiscard]] const engines::guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    void acquire(engines::acquire_request, engines::call,
                 engines::completion<engines::acquire_reply>) override {}
    void renew(std::vector<engines::renew_request>, engines::call,
               engines::completion<std::vector<engines::renew_reply>>) override {}
    void release(engines::release_request, engines::call,
                 engines::completion<engines::release_reply>) override {}

private:
    bool& gone_;
    engines::guarantees promises_;
    std::string address_;
};

TEST(store_access, nobody_enters_a_closed_store) {
    bool gone = false;
    store_access store{std::make_unique<idle_engine>(gone)};
    EXPECT_TRUE(store_access::use{store});

    EXPECT_TRUE(store.close());
    EXPECT_FALSE(store.close()) << "it was closed before";

    EXPECT_FALSE(store_access::use{store});
    EXPECT_FALSE(store.in_use());
    store.end();
    EXPECT_TRUE(gone);
}

TEST(store_access, the_end_waits_for_the_last_thread_inside) {
    bool gone = false;
    store_access store{std::make_unique<idle_engine>(gone)};
    std::optional<store_access::use> inside{std::in_place, store};
    EXPECT_TRUE(store.close());
    EXPECT_TRUE(store.in_use());

    std::atomic<bool> left{false};
    std::jthread other{[&] {
        left = true;
        inside.reset();
    }};
    store.wait_until_unused();

    EXPECT_TRUE(left);
    EXPECT_FALSE(store.in_use());
}

}  // namespace

}  // namespace holdfast::detail
