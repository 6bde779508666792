#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/options.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/token.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "messages.hpp"

namespace holdfast::cli {

struct store_arguments {
    std::string address;
    scope require{scope::process};
    /// A password was given on the command line, where everybody can read it.
    bool password_exposed{};
    /// How long the whole command may take; never set for `run`.
    std::optional<std::chrono::milliseconds> timeout;
};

enum class loss_policy : std::uint8_t { terminate, kill, ignore };

/// How the command gets the store's address.
enum class store_passing : std::uint8_t { without_password, with_password };

struct run_arguments {
    store_arguments store;
    std::string name;
    std::vector<std::string> command;
    /// Empty: wait as long as it takes. Zero: do not wait.
    std::optional<std::chrono::milliseconds> wait;
    std::chrono::milliseconds ttl{std::chrono::seconds{30}};
    std::optional<std::chrono::milliseconds> max_hold;
    std::optional<std::chrono::milliseconds> min_hold;
    std::optional<std::chrono::milliseconds> once_per;
    /// Run although `once_per` would skip.
    bool again{};
    std::optional<std::chrono::milliseconds> grace;
    loss_policy on_lost{loss_policy::terminate};
    store_passing pass_store{store_passing::without_password};
    bool shared{};
    std::optional<std::uint32_t> permits;
    std::string label;
    bool json{};
    verbosity level{verbosity::normal};
};

struct list_arguments {
    store_arguments store;
    std::string prefix;
    bool json{};
};

struct inspect_arguments {
    store_arguments store;
    std::string name;
    bool json{};
};

struct release_arguments {
    store_arguments store;
    std::string name;
    bool force{};
    std::string reason;
    std::optional<owner_id> owner;
    std::optional<fencing_token> token;
    bool json{};
};

struct check_arguments {
    store_arguments store;
    std::string name;
    std::optional<owner_id> owner;
    std::optional<fencing_token> token;
    bool json{};
    verbosity level{verbosity::normal};
};

struct doctor_arguments {
    store_arguments store;
    bool json{};
};

struct help_request {
    /// Empty for the overview.
    std::string command;
    bool json{};
};

struct version_request {
    bool json{};
};

using command_line =
    std::variant<help_request, version_request, run_arguments, list_arguments, inspect_arguments,
                 release_arguments, check_arguments, doctor_arguments>;

/// Understands the command line and the environment variables that stand in for its options.
/// Throws `stop_program` with `exit_code::usage`, or `exit_code::configuration` for a variable, and a
/// line that says what to write instead.
[[nodiscard]] command_line parse_arguments(std::vector<std::string> words);

/// Whether these words ask for JSON, even if they make no sense otherwise.
[[nodiscard]] bool asks_for_json(const std::vector<std::string>& words);

}  // namespace holdfast::cli
