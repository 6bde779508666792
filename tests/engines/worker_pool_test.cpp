#include <common/worker_pool.hpp>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

using verdict = worker_pool::verdict;

TEST(worker_pool, jobs_start_in_the_order_of_their_submission) {
    worker_pool pool{1};
    std::vector<int> order;
    counter done;
    for (int number = 0; number < 100; ++number) {
        ASSERT_EQ(pool.submit(clock::now() + patience,
                              [&, number](verdict) {
                                  order.push_back(number);
                                  done.add();
                              }),
                  verdict::run);
    }
    ASSERT_TRUE(done.reaches(100));
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(worker_pool, a_job_that_waits_behind_stuck_workers_ends_at_its_deadline) {
    worker_pool pool{1};
    std::promise<void> unblock;
    std::promise<verdict> second;
    ASSERT_EQ(pool.submit(clock::now() + patience, [&](verdict) { unblock.get_future().wait(); }),
              verdict::run);
    ASSERT_EQ(pool.submit(clock::now() + 20ms, [&](verdict what) { second.set_value(what); }),
              verdict::run);
    auto answer = second.get_future();
    ASSERT_EQ(answer.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(answer.get(), verdict::expired);
    unblock.set_value();
}

TEST(worker_pool, stopping_refuses_what_waits_and_ends_after_what_runs) {
    worker_pool pool{1};
    counter started;
    std::promise<void> unblock;
    std::atomic<bool> finished{};
    std::promise<verdict> waiting;
    ASSERT_EQ(pool.submit(clock::now() + patience,
                          [&](verdict) {
                              started.add();
                              unblock.get_future().wait();
                              finished = true;
                          }),
              verdict::run);
    ASSERT_TRUE(started.reaches(1));
    ASSERT_EQ(pool.submit(clock::now() + patience,
                          [&](verdict what) {
                              waiting.set_value(what);
                              unblock.set_value();
                          }),
              verdict::run);
    pool.stop();
    EXPECT_TRUE(finished);
    EXPECT_EQ(waiting.get_future().get(), verdict::shut_down);
    EXPECT_EQ(pool.submit(clock::now() + patience, [](verdict) {}), verdict::shut_down);
}

}  // namespace

}  // namespace holdfast::engines::test
