#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <support/redis_servers.hpp>

namespace lab {

using holdfast::testing_support::redis_client;
using holdfast::testing_support::redis_server;

/// What an actor said, with the token it holds if it does.
struct line {
    std::string text;
    std::optional<std::uint64_t> token;
};

/// A process of its own that plays one part, so it can really be killed or stopped. Director and actor
/// talk through two lists in a server: every step is an event, and nobody guesses a time.
///
/// Thread safety: none.
class actor {
public:
    /// Runs this very program as `role`. `more` are further arguments for it.
    actor(const redis_server& server, std::string_view role, std::string name,
          const std::vector<std::string>& more = {});

    /// The next thing it says. Throws when it says nothing.
    line hear();
    /// Lets it go on from `script::wait_for_cue`.
    void cue();
    /// SIGKILL, and returns when it is gone.
    void kill();
    void stop() const;
    void go_on() const;
    /// Waits for its end; the signal that ended it, or 0.
    int end();

private:
    holdfast::testing_support::temporary_directory files_;
    std::string name_;
    redis_client line_;
    holdfast::testing_support::server_process process_;
};

/// The actor's side, in the actor's process.
class script {
public:
    /// NAME PORT [MORE…]
    explicit script(std::vector<std::string> arguments);

    void say(const std::string& text, std::uint64_t token = 0);
    void wait_for_cue();
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] const std::string& name() const { return arguments_.front(); }
    /// What the director passed on.
    [[nodiscard]] const std::string& more(std::size_t index) const { return arguments_.at(index + 2); }

private:
    std::vector<std::string> arguments_;
    std::uint16_t port_;
    redis_client line_;
};

struct role {
    std::string_view name;
    void (*play)(script&);
};

}  // namespace lab
