#include <local/process_watch.hpp>

#include <sys/resource.h>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using local::process_ref;
using local::process_watch;
using local::this_process;

/// While it is there nothing can be opened.
class no_descriptors {
public:
    no_descriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const ::rlimit none{0, before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    no_descriptors(const no_descriptors&) = delete;
    no_descriptors& operator=(const no_descriptors&) = delete;
    ~no_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    ::rlimit before_{};
};

class local_process_watch : public testing::Test {
protected:
    /// Has the holder watched. It has been tried to open it when this returns.
    void follow_holder() {
        watch_.look_at("stock");
        ASSERT_TRUE(looked_up_.reaches(1));
        watch_.look_at("other");
        ASSERT_TRUE(looked_up_.reaches(2));
    }
    [[nodiscard]] std::vector<process_ref> holders_of(const std::string& name) {
        looked_up_.add();
        return name == "stock" ? std::vector{holder_process_} : std::vector<process_ref>{};
    }
    [[nodiscard]] static process_ref process_of(const other_process& other) {
        auto process = this_process();
        process.pid = other.pid();
        const auto there = local::status_of(process.pid);
        process.start_time = there ? there->start_time : 0;
        return process;
    }

    other_process holder_{[](const other_process::line& talk) { static_cast<void>(talk.hear()); }};
    const process_ref holder_process_ = process_of(holder_);
    counter looked_up_;
    counter died_;
    process_watch watch_{this_process(), [this](const std::string& name) { return holders_of(name); },
                         [this](const std::string&) { died_.add(); }};
};

TEST_F(local_process_watch, the_end_of_a_holder_is_noticed) {
    follow_holder();
    holder_.kill();
    EXPECT_TRUE(died_.reaches(1));
}

TEST_F(local_process_watch, it_is_noticed_although_there_was_no_descriptor_at_first) {
    {
        const no_descriptors now;
        follow_holder();
    }
    holder_.kill();
    EXPECT_TRUE(died_.reaches(1));
}

TEST_F(local_process_watch, it_is_noticed_without_any_descriptor) {
    const no_descriptors now;
    follow_holder();
    holder_.kill();
    EXPECT_TRUE(died_.reaches(1));
}

}  // namespace

}  // namespace holdfast::engines::test
