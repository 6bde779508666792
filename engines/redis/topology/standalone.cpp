#include <redis/topology/node.hpp>
#include <redis/topology/router.hpp>

#include <utility>

namespace holdfast::engines::redis {

namespace {

/// One server, perhaps with replicas. It is responsible for everything.
class standalone final : public router {
public:
    standalone(const address& given, events told)
        : node_{given.nodes.front(),
                given.connection,
                {.pubsub = {.heard = std::move(told.heard),
                            .subscribed = std::move(told.subscribed),
                            .moved_away = {},
                            .refused = std::move(told.refused)},
                 .lost = {}}} {}

    [[nodiscard]] failure connect(clock::time_point deadline) override {
        return node_.connect(deadline);
    }

    void send(std::uint16_t, lane path, connection::encode encoder, call terms,
              connection::done finished) override {
        node_.send(
            path, std::move(encoder), terms,
            [this, done = std::move(finished)](connection::result result) {
                if (!result.error && !result.replies.empty() &&
                    result.replies.front().error_code() == "READONLY") {
                    // It was our master: look who is there now before anything else is sent.
                    node_.reset({errc::store_unavailable, node_.where().text() + " became a replica"});
                }
                done(std::move(result));
            });
    }

    [[nodiscard]] std::vector<std::uint16_t> a_slot_of_each_master() override { return {0}; }

    void subscribe(const channel_place& place) override {
        node_.pubsub().subscribe(place.channel, channel_style::classic);
    }
    void unsubscribe(const channel_place& place) override { node_.pubsub().unsubscribe(place.channel); }
    [[nodiscard]] bool subscribed(const channel_place& place) const override {
        return node_.pubsub().active(place.channel);
    }
    void attend(std::uint16_t, idle_thread& visitor,
                const std::function<bool()>& others_listen) override {
        node_.pubsub().attend(visitor, others_listen);
    }
    [[nodiscard]] const std::string& publish_command() const noexcept override {
        static const std::string command{"publish"};
        return command;
    }
    [[nodiscard]] bool clustered() const noexcept override { return false; }
    [[nodiscard]] std::uint32_t replicas_of(std::uint16_t) const override { return node_.replicas(); }
    [[nodiscard]] store_instance instance_of(std::uint16_t) const override { return node_.instance(); }
    [[nodiscard]] std::uint64_t commands_sent() const override { return node_.commands_sent(); }

private:
    node node_;
};

}  // namespace

std::unique_ptr<router> make_standalone(const address& given, router::events told) {
    return std::make_unique<standalone>(given, std::move(told));
}

}  // namespace holdfast::engines::redis
