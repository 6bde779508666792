#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "background_writer.hpp"
#include "fixture.hpp"
#include "messages.hpp"

namespace holdfast::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Writes its pid to `pid` and does not care about TERM.
constexpr const char* stubborn =
    "trap '' TERM; echo $$ > $PIDS/pid; while [ -d $PIDS ]; do sleep 0.05; done";

/// A pipe that can be full, and whose reader can be gone.
class pipe_to_test {
public:
    pipe_to_test() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
    pipe_to_test(const pipe_to_test&) = delete;
    pipe_to_test& operator=(const pipe_to_test&) = delete;
    ~pipe_to_test() {
        close_reader();
        ::close(ends_[1]);
    }

    [[nodiscard]] int writer() const noexcept { return ends_[1]; }
    void make_non_blocking() const { ::fcntl(ends_[1], F_SETFL, O_WRONLY | O_NONBLOCK); }
    void fill() const {
        make_non_blocking();
        const std::string much(65'536, 'x');
        while (::write(ends_[1], much.data(), much.size()) > 0) {
        }
        ::fcntl(ends_[1], F_SETFL, O_WRONLY);
    }
    void close_reader() {
        if (ends_[0] >= 0) {
            ::close(std::exchange(ends_[0], -1));
        }
    }
    [[nodiscard]] int waiting_bytes() const {
        int count = 0;
        ::ioctl(ends_[0], FIONREAD, &count);
        return count;
    }
    /// Reads until the text ends with `end`, or nothing more comes.
    [[nodiscard]] std::string read_to(const std::string& end) const {
        std::string text;
        std::array<char, 65'536> buffer{};
        pollfd more{ends_[0], POLLIN, 0};
        while (!text.ends_with(end) && ::poll(&more, 1, 20'000) > 0) {
            const auto length = ::read(ends_[0], buffer.data(), buffer.size());
            if (length <= 0) {
                break;
            }
            text.append(buffer.data(), static_cast<std::size_t>(length));
        }
        return text;
    }

private:
    std::array<int, 2> ends_{};
};

class output : public cli_test {
protected:
    [[nodiscard]] program_options with_errors_to(const pipe_to_test& pipe) const {
        return {.environment = {{"PIDS", file("").string()}},
                .prepare = [number = pipe.writer()] { ::dup2(number, STDERR_FILENO); }};
    }
    [[nodiscard]] program_options with_closed(std::vector<int> numbers) const {
        return {.environment = {{"PIDS", file("").string()}}, .prepare = [numbers] {
                    for (const int number : numbers) {
                        ::close(number);
                    }
                }};
    }
    [[nodiscard]] pid_t pid() const {
        return static_cast<pid_t>(std::stol(wait_for_line(file("pid"))));
    }
    void revoke() const {
        ASSERT_EQ(finish({"release", "job", "--force", "--reason", "test"})->wait(), 0);
    }
    void expect_free() const { EXPECT_TRUE(inspect("job").at("free").as_bool()); }
};

TEST_F(output, that_nobody_reads_does_not_keep_a_command_alive_past_its_lease) {
    pipe_to_test full;
    full.fill();
    const auto running =
        start(run_script("job", {"--ttl", "3s", "--grace", "200ms", "--json"}, stubborn),
              with_errors_to(full));
    const auto child = pid();
    revoke();
    EXPECT_EQ(running->wait(), 76);
    EXPECT_FALSE(exists(child));
    expect_free();
}

TEST_F(output, that_nobody_reads_does_not_delay_the_notice_of_a_loss) {
    pipe_to_test full;
    full.fill();
    // With --verbose the library's own thread, which tells of losses, has something to say first.
    const auto running =
        start(run_script("job", {"--ttl", "3s", "--on-lost", "kill", "--verbose"}, stubborn),
              with_errors_to(full));
    const auto child = pid();
    revoke();
    EXPECT_EQ(running->wait(), 76);
    EXPECT_FALSE(exists(child));
}

TEST_F(output, that_nobody_reads_does_not_delay_signals) {
    pipe_to_test full;
    full.fill();
    const auto running =
        start(run_script("job", {"--verbose"}, "echo ready; exec sleep 60"), with_errors_to(full));
    running->wait_for_output("ready");
    for (int i = 0; i < 3; ++i) {
        running->signal(SIGWINCH);
    }
    running->signal(SIGTERM);
    EXPECT_EQ(running->wait(), 128 + SIGTERM);
    expect_free();
}

TEST_F(output, that_nobody_reads_does_not_delay_the_release) {
    pipe_to_test full;
    full.fill();
    const auto running =
        start(run_script("job", {"--verbose", "--json"}, "exit 3"), with_errors_to(full));
    EXPECT_EQ(running->wait(), 3);
    expect_free();
}

TEST_F(output, without_a_reader_is_dropped) {
    pipe_to_test broken;
    broken.close_reader();
    const auto running =
        start(run_script("job", {"--ttl", "3s", "--grace", "200ms", "--verbose"}, stubborn),
              with_errors_to(broken));
    const auto child = pid();
    revoke();
    EXPECT_EQ(running->wait(), 76);
    EXPECT_FALSE(exists(child));
}

TEST_F(output, to_a_stopped_terminal_does_not_keep_a_command_alive_past_its_lease) {
    words command{program_path()};
    for (const auto& word : run_script("job", {"--ttl", "3s", "--grace", "200ms"},
                                       "trap '' TERM; echo $$ > $PIDS/pid; echo beg\"\"in; "
                                       "while [ -d $PIDS ]; do sleep 0.05; done")) {
        command.push_back(word);
    }
    auto variables = environment();
    variables["PIDS"] = file("").string();
    terminal_program running{command, variables};
    running.wait_for("begin");
    const auto child = pid();
    running.type("\x13");  // Ctrl-S
    revoke();
    EXPECT_EQ(running.wait(), 76);
    EXPECT_FALSE(exists(child));
    EXPECT_THAT(running.screen(), Not(HasSubstr("lost")));
}

TEST_F(output, to_closed_descriptors_is_dropped) {
    const auto running =
        start(run_script("job", {"--ttl", "3s", "--grace", "200ms", "--json"}, stubborn),
              with_closed({0, 1, 2}));
    const auto child = pid();
    revoke();
    EXPECT_EQ(running->wait(), 76);
    EXPECT_FALSE(exists(child));
}

TEST_F(output, to_closed_descriptors_never_reaches_the_store) {
    const auto running = start(run_script("job", {"--verbose"}, "echo $$ > $PIDS/pid; exec sleep 60"),
                               with_closed({0, 1, 2}));
    static_cast<void>(pid());
    for (const char* number : {"0", "1", "2"}) {
        const auto link =
            std::filesystem::path{"/proc"} / std::to_string(running->id()) / "fd" / number;
        EXPECT_EQ(std::filesystem::read_symlink(link), "anon_inode:[eventpoll]") << number;
    }
    running->signal(SIGTERM);
    EXPECT_EQ(running->wait(), 128 + SIGTERM);
}

TEST_F(output, closed_descriptors_stay_closed_in_the_command) {
    const auto ran =
        start(run_script("job", {}, "[ -e /proc/$$/fd/0 ] || [ -e /proc/$$/fd/2 ] || exit 7"),
              with_closed({0, 2}));
    EXPECT_EQ(ran->wait(), 7);
}

TEST_F(output, that_is_asked_for_and_cannot_be_written_because_it_is_closed_gives_74) {
    const auto holder = hold("job");
    for (const auto& arguments :
         {words{"list"}, words{"list", "--json"}, words{"inspect", "job"},
          words{"inspect", "job", "--json"}, words{"doctor"}, words{"version"}, words{"help"}}) {
        const auto asked = finish(arguments, with_closed({STDOUT_FILENO}));
        EXPECT_EQ(asked->wait(), 74) << arguments.front();
        EXPECT_EQ(asked->errors(),
                  "holdfast: standard output could not be written: Bad file descriptor\n");
    }
    EXPECT_EQ(finish({"run", "other", "--", "true"}, with_closed({STDOUT_FILENO}))->wait(), 0)
        << "that is its command's";
}

TEST(write_all, waits_for_room_in_a_pipe_that_somebody_made_non_blocking) {
    const pipe_to_test pipe;
    pipe.make_non_blocking();
    std::jthread writer{[&] { write_all(pipe.writer(), std::string(200'000, 'x') + "end\n"); }};
    wait_until("a full pipe", [&] { return pipe.waiting_bytes() == 65'536; });
    EXPECT_EQ(pipe.read_to("end\n").size(), 200'004);
}

TEST(background_writer, writes_in_order) {
    const pipe_to_test pipe;
    background_writer writer{pipe.writer()};
    writer.write("one\n");
    writer.write("two\n");
    writer.finish();
    writer.write("too late\n");
    EXPECT_EQ(pipe.read_to("two\n"), "one\ntwo\n");
}

TEST(background_writer, never_waits_and_says_how_many_lines_it_dropped) {
    const pipe_to_test pipe;
    pipe.fill();
    background_writer writer{pipe.writer()};
    for (int i = 0; i < 5'000; ++i) {
        writer.write("line\n");
    }
    const auto text = pipe.read_to("are missing here\n");
    EXPECT_THAT(text, StartsWith("xxx"));
    EXPECT_THAT(text,
                ::testing::ContainsRegex("line\nholdfast: (3999|4000) lines are missing here\n$"));
}

TEST(background_writer, leaves_a_blocked_thread_behind) {
    const pipe_to_test pipe;
    pipe.fill();
    {
        background_writer writer{pipe.writer()};
        writer.write("line\n");
    }
    EXPECT_THAT(pipe.read_to("line\n"), StartsWith("xxx"));
}

}  // namespace
}  // namespace holdfast::cli::testing
