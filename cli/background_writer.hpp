#pragma once

#include <memory>
#include <string>
#include <thread>

namespace holdfast::cli {

/// Writes lines on a thread of its own. No caller ever waits for the reader: a full pipe or a stopped
/// terminal (Ctrl-S) holds up this thread and nobody else.
///
/// Lines are written in order, each in one write. At most a thousand lines wait. Later lines are
/// dropped, and a line with their number takes their place.
///
/// Thread safety: `write` may be called from any thread.
class background_writer {
public:
    explicit background_writer(int descriptor);
    background_writer(const background_writer&) = delete;
    background_writer& operator=(const background_writer&) = delete;
    ~background_writer() { finish(); }

    /// Never waits. Does nothing after `finish`.
    void write(std::string line);
    /// Waits until everything is written, two seconds at most. What nobody has read by then is left
    /// to the thread, which ends with the program.
    void finish() noexcept;

private:
    struct state;

    static void work(int descriptor, const std::shared_ptr<state>& shared);

    std::shared_ptr<state> state_;
    std::thread thread_;
};

}  // namespace holdfast::cli
