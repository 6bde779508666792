// A host on which something has run out: threads, descriptors, room on the disk. Everything happens in
// children: the test itself keeps what it has.
#include <common/worker_pool.hpp>

#include <cstddef>

#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>

#include "support.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace holdfast::engines::test {

namespace {

/// From now on this thread starts no other: `pthread_create` fails with `EAGAIN`, as at a limit of
/// processes. Nor does any thread that exists already.
bool forbid_threads() {
    constexpr auto number = static_cast<std::uint32_t>(offsetof(::seccomp_data, nr));
    const auto fails = static_cast<std::uint32_t>(SECCOMP_RET_ERRNO | EAGAIN);
    ::sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, fails),
    };
    ::sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

constexpr char good = '+';

TEST(shortage, a_job_for_which_there_is_no_thread_is_left_to_the_caller) {
    EXPECT_EQ(
        in_a_child([] {
            worker_pool pool{2};
            bool called = false;
            const bool forbidden = forbid_threads();
            const auto verdict =
                pool.submit(clock::now() + patience, [&](worker_pool::verdict) { called = true; });
            return forbidden && verdict == worker_pool::verdict::no_thread && !called ? good : '-';
        }),
        good);
}

TEST(shortage, a_pool_that_has_a_thread_makes_do_with_it) {
    EXPECT_EQ(in_a_child([] {
                  worker_pool pool{2};
                  counter done;
                  const auto submit = [&] {
                      return pool.submit(clock::now() + patience,
                                         [&](worker_pool::verdict) { done.add(); });
                  };
                  const bool first = submit() == worker_pool::verdict::run && forbid_threads();
                  const bool others =
                      submit() == worker_pool::verdict::run && submit() == worker_pool::verdict::run;
                  return first && others && done.reaches(3) ? good : '-';
              }),
              good);
}

TEST(shortage, without_a_further_thread_leases_are_renewed_and_calls_that_can_be_stopped_succeed) {
    const temporary_directory base;
    EXPECT_EQ(in_a_child([&] {
                  client here{"local:" + base.path()};
                  mutex renewed{here, "renewed", {.ttl = 3s}};
                  mutex stoppable{here, "stoppable"};
                  if (!forbid_threads()) {
                      return 'f';
                  }
                  lease held = renewed.acquire();
                  const auto until = held.valid_until();
                  const std::stop_source stop;
                  if (!stoppable.lock_unless_stopped(stop.get_token())) {
                      return 's';
                  }
                  stoppable.unlock();
                  while (held && held.valid_until() == until) {
                      std::this_thread::sleep_for(5ms);  // not a guess: polls
                  }
                  return held && held.release() == release_outcome::released ? good : '-';
              }),
              good);
}

class without_threads : public testing::TestWithParam<const char*> {};

TEST_P(without_threads, a_client_cannot_be_made_and_says_so) {
    const temporary_directory base;
    EXPECT_EQ(in_a_child([&] {
                  const std::string store = std::string{GetParam()} + base.path();
                  if (!forbid_threads()) {
                      return 'f';
                  }
                  return refusal_of([&] { return std::make_unique<client>(store); }).code ==
                                 errc::store_unavailable
                             ? good
                             : '-';
              }),
              good);
}

INSTANTIATE_TEST_SUITE_P(stores, without_threads, testing::Values("local:", "memory:"),
                         [](const auto& one) {
                             return std::string{one.param}.substr(0, std::string{one.param}.size() - 1);
                         });

/// The errors with which a client cannot be made while there are only so many descriptors.
TEST(shortage, with_too_few_descriptors_a_store_is_unavailable_or_works) {
    const temporary_directory base;
    for (::rlim_t most = 3; most < 24; ++most) {
        const char answer = in_a_child([&] {
            const int one_more = ::dup(0);
            ::close(one_more);
            const ::rlim_t limit = static_cast<::rlim_t>(one_more) + most - 3;
            const ::rlimit few{limit, limit};
            ::setrlimit(RLIMIT_NOFILE, &few);
            try {
                const auto who = identity();
                const auto store = open_local(base.path() + "/s" + std::to_string(most), who);
                const auto reply = acquire(*store, exclusive("stock", owner_of(who)));
                return reply.result == granted                       ? good
                       : reply.error.code == errc::store_unavailable ? 'u'
                                                                     : '-';
            } catch (const std::system_error& error) {
                std::fprintf(stderr, "%d descriptors: %s\n", static_cast<int>(most), error.what());
                return error.code() == errc::store_unavailable ? 'u' : '-';
            }
        });
        EXPECT_TRUE(answer == good || answer == 'u') << most << " " << answer;
    }
}

}  // namespace

}  // namespace holdfast::engines::test
