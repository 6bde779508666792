// A store in an environment that lacks what programs usually have. Everything happens in children.
#include <fstream>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using line = other_process::line;

constexpr char not_allowed = '-';
constexpr char well = 'w';

/// The letter of a failure: what the parent expects to hear.
char letter_of(const failure& why) {
    if (!why) {
        return well;
    }
    switch (why.code) {
        case errc::store_unavailable:
            return 'u';
        case errc::bad_configuration:
            return 'c';
        case errc::unauthorised:
            return 'a';
        default:
            std::fprintf(stderr, "child: %s\n", why.detail.c_str());
            return '?';
    }
}

bool mount_memory(const std::string& path, const char* options, unsigned long flags = 0) {
    return (::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("tmpfs", path.c_str(), "tmpfs", flags, options) == 0;
}

class local_cold : public testing::Test {
protected:
    /// What `work` says, one letter after the other, in a process of its own.
    [[nodiscard]] static std::string in_a_child(const std::function<void(const line&)>& work) {
        const other_process child{work};
        std::string said;
        for (char letter = child.talk().hear(); letter != 0; letter = child.talk().hear()) {
            said += letter;
        }
        return said;
    }

    const temporary_directory base_;
    const client_identity who_ = identity();
};

#define HOLDFAST_EXPECT_SAID(said, expected)                         \
    const std::string heard = (said);                                \
    if (heard == std::string{not_allowed}) {                         \
        GTEST_SKIP() << "this needs a mount, which we may not make"; \
    }                                                                \
    EXPECT_EQ(heard, expected)

TEST_F(local_cold, with_standard_streams_closed_nothing_that_is_printed_gets_into_the_store) {
    const other_process printer{[&](const line& talk) {
        for (const int stream : {0, 1, 2}) {
            ::close(stream);
        }
        const auto store = open_local(base_.path(), who_);
        const std::string text(4096, 'x');
        for (const int stream : {0, 1, 2}) {
            static_cast<void>(::write(stream, text.data(), text.size()) < 0);
        }
        talk.say(letter_of(acquire(*store, exclusive("stock", owner_of(who_))).error));
        static_cast<void>(talk.hear());
    }};
    ASSERT_EQ(printer.talk().hear(), well);
    const auto guest = identity();
    const auto store = open_local(base_.path(), guest);
    EXPECT_EQ(acquire(*store, exclusive("stock", owner_of(guest))).result, busy);
}

TEST_F(local_cold, on_a_full_disk_nothing_new_is_granted_until_there_is_room) {
    HOLDFAST_EXPECT_SAID(
        in_a_child([&](const line& talk) {
            if (!mount_memory(base_.path(), "size=1m,mode=700")) {
                talk.say(not_allowed);
                return;
            }
            const auto store = open_local(base_.path(), who_);
            talk.say(letter_of(acquire(*store, exclusive("stock", owner_of(who_))).error));
            std::ofstream{base_.path() + "/filler"} << std::string(2'000'000, 'x') << std::flush;
            failure last;
            for (int count = 0; !last && count < 10'000; ++count) {
                const auto name = "n" + std::to_string(count);
                last = acquire(*store, exclusive(name, owner_of(who_))).error;
            }
            talk.say(letter_of(last));
            std::filesystem::remove(base_.path() + "/filler");
            talk.say(letter_of(acquire(*store, exclusive("after", owner_of(who_))).error));
            talk.say(letter_of(release(*store, {.name = "stock", .owner = owner_of(who_)}).error));
        }),
        "wuww");
}

TEST_F(local_cold, a_disk_that_is_smaller_than_the_journal_grows_is_enough) {
    HOLDFAST_EXPECT_SAID(
        in_a_child([&](const line& talk) {
            if (!mount_memory(base_.path(), "size=1m,mode=700")) {
                talk.say(not_allowed);
                return;
            }
            for (int program = 0; program < 2; ++program) {
                const auto store = open_local(base_.path(), who_);
                failure last;
                for (int count = 0; !last && count < 1000; ++count) {
                    last = acquire(*store, exclusive("stock", owner_of(who_))).error;
                    last =
                        last ? last : release(*store, {.name = "stock", .owner = owner_of(who_)}).error;
                }
                talk.say(letter_of(last));
            }
        }),
        "ww");
}

TEST_F(local_cold, on_a_disk_that_is_too_small_it_is_refused) {
    HOLDFAST_EXPECT_SAID(
        in_a_child([&](const line& talk) {
            if (!mount_memory(base_.path(), "size=16k,mode=700")) {
                talk.say(not_allowed);
                return;
            }
            const auto refused = refusal_of([&] { return open_local(base_.path(), who_); });
            talk.say(refused.detail.find("No space") != std::string::npos ? well : '?');
        }),
        "w");
}

TEST_F(local_cold, on_a_disk_that_is_read_only_it_is_refused) {
    HOLDFAST_EXPECT_SAID(
        in_a_child([&](const line& talk) {
            if (!mount_memory(base_.path(), "size=1m,mode=700", MS_RDONLY)) {
                talk.say(not_allowed);
                return;
            }
            talk.say(letter_of(refusal_of([&] { return open_local(base_.path(), who_); })));
            talk.say(letter_of(refusal_of([&] { return open_local(base_.path() + "/below", who_); })));
        }),
        "aa");
}

TEST_F(local_cold, without_descriptors_it_is_refused_and_one_that_is_open_goes_on) {
    EXPECT_EQ(
        in_a_child([&](const line& talk) {
            const auto store = open_local(base_.path(), who_);
            ::rlimit before{};
            ::getrlimit(RLIMIT_NOFILE, &before);
            const ::rlimit none{0, before.rlim_max};
            ::setrlimit(RLIMIT_NOFILE, &none);
            talk.say(letter_of(acquire(*store, exclusive("stock", owner_of(who_))).error));
            talk.say(letter_of(
                renew(*store, {.name = "stock", .owner = owner_of(who_), .ttl = 1min}).error));
            const auto refused = refusal_of([&] { return open_local(base_.path() + "/other", who_); });
            talk.say(refused.detail.find("Too many open files") != std::string::npos ? well : '?');
            ::setrlimit(RLIMIT_NOFILE, &before);
            talk.say(letter_of(release(*store, {.name = "stock", .owner = owner_of(who_)}).error));
            talk.say(inspect(*store, "stock").holders.empty() ? well : '?');
        }),
        "wwwww");
}

TEST_F(local_cold, without_proc_a_store_in_memory_works) {
    HOLDFAST_EXPECT_SAID(
        in_a_child([&](const line& talk) {
            if (::chroot(base_.path().c_str()) != 0 &&
                (::unshare(CLONE_NEWUSER) != 0 || ::chroot(base_.path().c_str()) != 0)) {
                talk.say(not_allowed);
                return;
            }
            const auto who = make_identity("cold");
            const auto store = open_memory("", who);
            talk.say(letter_of(acquire(*store, exclusive("stock", owner_of(who))).error));
        }),
        "w");
}

}  // namespace

}  // namespace holdfast::engines::test
