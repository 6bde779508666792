#include "actor.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace lab {

using holdfast::testing_support::read_file;
using holdfast::testing_support::wait_until;

namespace {

/// Longer than anything here takes; the answer to BLPOP comes as soon as there is one.
constexpr auto patience_in_seconds = "10";

std::vector<std::string> command_line(const redis_server& server, std::string_view role,
                                      const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe").string(), "actor",
                                   std::string{role}, name, std::to_string(server.port())};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

std::string said(const std::string& name) {
    return "lab:said:" + name;
}

std::string cues(const std::string& name) {
    return "lab:cues:" + name;
}

/// The element of BLPOP's answer, which is a list's name and the element.
std::string popped(const holdfast::testing_support::redis_reply& reply, const std::string& complaint) {
    if (reply.items.size() != 2) {
        throw std::runtime_error{complaint + reply.as_text()};
    }
    return reply.items.back().text;
}

}  // namespace

actor::actor(const redis_server& server, std::string_view role, std::string name,
             const std::vector<std::string>& more)
    : name_{std::move(name)},
      line_{server.connect()},
      process_{command_line(server, role, name_, more), files_.path() / "output"} {}

line actor::hear() {
    const auto reply = line_.command({"BLPOP", said(name_), patience_in_seconds});
    const auto text = popped(reply, name_ + " says nothing; " + read_file(files_.path() / "output"));
    const auto bar = text.find('|');
    const auto token = std::stoull(text.substr(bar + 1));
    return {text.substr(0, bar), token == 0 ? std::nullopt : std::optional<std::uint64_t>{token}};
}

void actor::cue() {
    line_.command({"RPUSH", cues(name_), "go on"});
}

void actor::kill() {
    process_.end_now();
}

void actor::stop() const {
    process_.signal(SIGSTOP);
    siginfo_t state{};
    if (::waitid(P_PID, static_cast<id_t>(process_.pid()), &state, WSTOPPED) != 0) {
        throw std::runtime_error{name_ + " does not stop"};
    }
}

void actor::go_on() const {
    process_.signal(SIGCONT);
}

int actor::end() {
    siginfo_t state{};
    // `server_process` waits for this process as well, so we only look (WNOWAIT).
    wait_until("the end of " + name_, [&] {
        const auto pid = static_cast<id_t>(process_.pid());
        return ::waitid(P_PID, pid, &state, WEXITED | WNOWAIT | WNOHANG) == 0 && state.si_pid != 0;
    });
    return state.si_code == CLD_EXITED ? 0 : state.si_status;
}

script::script(std::vector<std::string> arguments)
    : arguments_{std::move(arguments)},
      port_{static_cast<std::uint16_t>(std::stoul(arguments_.at(1)))},
      line_{port_} {}

void script::say(const std::string& text, std::uint64_t token) {
    line_.command({"RPUSH", said(name()), text + "|" + std::to_string(token)});
}

void script::wait_for_cue() {
    popped(line_.command({"BLPOP", cues(name()), patience_in_seconds}), name() + " gets no cue");
}

}  // namespace lab
