#include <redis/topology/cluster_survey.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <redis/errors.hpp>

namespace holdfast::engines::redis {

namespace {

/// One line of "name:value\r\n…"; empty if there is none.
[[nodiscard]] std::string_view line_of(std::string_view text, std::string_view name) {
    while (!text.empty()) {
        const auto end = std::min(text.find("\r\n"), text.size());
        const auto line = text.substr(0, end);
        if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
            return line.substr(name.size() + 1);
        }
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return {};
}

[[nodiscard]] failure why_no_map(const value& answer, const node_address& asked) {
    // "ERR This instance has cluster support disabled", or a server that does not know the command.
    if (answer.error_code() == "ERR") {
        return {errc::bad_configuration, asked.text() +
                                             ": this server is not part of a cluster; use redis://" +
                                             asked.text() + " (" + answer.text + ")"};
    }
    failure reason = answer.is_error() ? meaning_of(answer) : senseless_answer("CLUSTER SLOTS");
    reason.detail = asked.text() + ": " + reason.detail;
    return reason;
}

}  // namespace

const std::vector<std::vector<std::string>>& survey_commands() {
    static const std::vector<std::vector<std::string>> commands{
        {"CLUSTER", "SLOTS"}, {"CLUSTER", "INFO"}, {"PUBSUB", "SHARDNUMSUB"}};
    return commands;
}

cluster_survey read_survey(const std::vector<value>& answers, const node_address& asked) {
    cluster_survey result;
    if (answers.size() != survey_commands().size()) {
        result.error = senseless_answer("CLUSTER SLOTS");
        return result;
    }
    auto map = slot_map::read(answers[0], asked);
    if (!map) {
        result.error = why_no_map(answers[0], asked);
        return result;
    }
    if (map->empty()) {
        result.error = {errc::store_unavailable,
                        asked.text() + ": the cluster is not set up: nobody has any slots"};
        return result;
    }
    result.map = *std::move(map);
    if (!answers[1].is_error()) {
        result.well = line_of(answers[1].text, "cluster_state") != "fail";
        const auto epoch = line_of(answers[1].text, "cluster_current_epoch");
        std::from_chars(epoch.data(), epoch.data() + epoch.size(), result.epoch);
    }
    result.sharded = !answers[2].is_error();
    return result;
}

cluster_survey survey_through(node& server, clock::time_point deadline) {
    cluster_survey result;
    server.send(
        router::lane::common,
        [](std::string& out, const server_facts&) {
            for (const auto& command : survey_commands()) {
                append_command(out, std::vector<std::string_view>{command.begin(), command.end()});
            }
            return connection::expected{survey_commands().size()};
        },
        {deadline, caller::may_block},
        [&](connection::result answer) {
            if (answer.error) {
                result.error = std::move(answer.error);
            } else {
                result = read_survey(answer.replies, server.where());
            }
        });
    return result;
}

cluster_survey survey_by_visit(const node_address& server, const connection_settings& settings,
                               clock::time_point deadline) {
    cluster_survey result;
    connection_settings patient = settings;
    patient.connect_timeout =
        std::max(std::chrono::milliseconds{1},
                 std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()));
    failure reason;
    {
        connection visit{server,
                         patient,
                         survey_commands(),
                         {.check_greeting =
                              [&](const std::vector<value>& answers) {
                                  result = read_survey(answers, server);
                                  return failure{};
                              },
                          .lost = {}}};
        reason = visit.connect(deadline);
    }
    if (reason && !result.error) {
        result.error = std::move(reason);
    }
    return result;
}

}  // namespace holdfast::engines::redis
