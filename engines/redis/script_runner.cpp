#include <redis/script_runner.hpp>

#include <redis/errors.hpp>

#include <memory>
#include <utility>

namespace holdfast::engines::redis {

void script_runner::run(script_call script, std::uint16_t slot, const call& limits, answered done,
                        router::lane lane) {
    struct pending {
        script_call script;
        answered done;
    };
    const auto call = std::make_shared<const pending>(pending{std::move(script), std::move(done)});
    const auto finish = [this](const pending& over, connection::result result) {
        under_way_.fetch_sub(1, std::memory_order_release);
        if (!result.error && result.replies.front().is_error()) {
            name_forbidden_command(result.replies.front(), over.script.source->text,
                                   servers_.publish_command());
            name_keys(result.replies.front(), over.script.keys);
        }
        over.done(std::move(result));
    };
    // The call lives until its answer has been dealt with. Nobody encodes it after that.
    const auto encoded = [script = &call->script](script_call::form form) {
        return [script, form](std::string& out, const server_facts& server) {
            return script->append(out, server, form);
        };
    };
    // Behind a script that the server does not know, WAIT would use up the time that is there.
    const auto first =
        lane == router::lane::confirmed ? script_call::form::text : script_call::form::fingerprint;
    under_way_.fetch_add(1, std::memory_order_relaxed);
    servers_.send(
        slot, lane, encoded(first), limits,
        [this, call, finish, encoded, slot, lane, until = limits.deadline](connection::result result) {
            const bool unknown_script =
                !result.error && result.replies.front().error_code() == "NOSCRIPT";
            if (!unknown_script) {
                finish(*call, std::move(result));
                return;
            }
            // Nothing has happened yet: say it in full.
            servers_.send(
                slot, lane, encoded(script_call::form::text), {until, caller::must_not_block},
                [call, finish](connection::result answer) { finish(*call, std::move(answer)); });
        });
}

}  // namespace holdfast::engines::redis
