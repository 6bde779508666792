#include "stage.hpp"

namespace holdfast::interop {

namespace {

[[nodiscard]] std::string next_name() {
    static int last = 0;
    return "stock-" + std::to_string(++last);
}

[[nodiscard]] std::vector<std::string> with_short_ttl(std::vector<std::string> arguments) {
    arguments.push_back("watchdog=" + std::to_string(short_ttl.count()));
    return arguments;
}

}  // namespace

std::unique_ptr<environment> interop_stage::environment_;
std::unique_ptr<java_driver> interop_stage::machine_;

void interop_stage::TearDownTestSuite() {
    machine_.reset();
    environment_.reset();
}

void interop_stage::SetUp() {
    if (!environment_) {
        environment_ = std::make_unique<environment>(make_environment());
    }
    if (!machine_) {
        machine_ = another_machine();
    }
    store_ = environment_->store;
    name_ = next_name();
    redis_.emplace(environment_->port);
    client_.emplace(store_);
}

std::string interop_stage::java_error_of(const std::string& thread, const std::string& verb) {
    try {
        java(thread, verb);
    } catch (const java_error& error) {
        return error.what();
    }
    return {};
}

std::string interop_stage::java_holder(const std::string& thread) {
    return machine().ask(own(thread), "self");
}

std::unique_ptr<java_driver> interop_stage::another_machine() const {
    return std::make_unique<java_driver>(GetParam(), with_short_ttl(environment_->java));
}

std::unique_ptr<child_process> interop_stage::another_process(const std::string& kind,
                                                              std::chrono::milliseconds ttl) const {
    auto process = std::make_unique<child_process>(std::vector<std::string>{
        HOLDFAST_INTEROP_HOLDER, store_, kind, name_, std::to_string(ttl.count())});
    static_cast<void>(process->read_line_within(patience));
    return process;
}

bool interop_stage::revoke() {
    const auto holder = client_->inspect(name_).holders.at(0);
    return client_->revoke(name_, holder.owner, holder.token, "for the test");
}

bool interop_stage::java_sleeps(const std::string& thread) {
    const auto question = "parked " + own(thread);
    return eventually([&] { return machine().ask("observer", question) == "true"; });
}

bool interop_stage::listens_quietly(const std::string& channel, std::int64_t clients) {
    constexpr std::chrono::milliseconds quiet{30};
    return eventually([&] {
        const auto asked = redis_->scripts_run();
        return listeners(channel) >= clients &&
               holds_throughout(quiet, [&] { return redis_->scripts_run() == asked; });
    });
}

}  // namespace holdfast::interop
