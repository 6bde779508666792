#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <redis/address.hpp>
#include <redis/net/connection.hpp>
#include <redis/net/subscriber.hpp>
#include <redis/topology/sentinel_agreement.hpp>
#include <redis/topology/sentinel_checkup.hpp>

namespace holdfast::engines::redis {

/// A channel, and where it is published.
struct channel_place {
    std::string channel;
    std::uint16_t slot{};
    /// `sharded` means: as the locks' channels are in this store. Classic ones reach everybody.
    channel_style style{channel_style::sharded};
};

/// Gets commands to the server that is responsible for a slot, and hears what is published there.
///
/// What differs between one server, a master found through sentinels, and a cluster is in here; the
/// engine sees slots only.
///
/// Thread safety: all functions may be called from any thread; callbacks run with no lock held.
/// The destructor completes what is pending with `errc::shut_down` and returns when no callback is
/// running.
class router {
public:
    /// Commands that wait for replicas hold up everything behind them, so they go their own way.
    enum class lane : std::uint8_t { common, confirmed };

    struct events {
        std::function<void(const std::string& channel, std::string_view message)> heard;
        /// Notifications for the channel flow from now on; some may have been missed.
        std::function<void(const std::string& channel)> subscribed;
        /// The user may not listen to the channel.
        std::function<void(const std::string& channel, const std::string& words)> refused{};
    };

    virtual ~router() = default;

    /// Connects to what is needed at first. Nothing, or why the store cannot be used.
    [[nodiscard]] virtual failure connect(clock::time_point deadline) = 0;
    /// `encode` may be called again, for another server, when the first one was not responsible.
    /// Errors that mean "somewhere else" or "not now" are followed or reported as failures; all others
    /// are values in the result.
    virtual void send(std::uint16_t slot, lane path, connection::encode encoder, call terms,
                      connection::done finished) = 0;
    /// For commands that concern all data there is.
    [[nodiscard]] virtual std::vector<std::uint16_t> a_slot_of_each_master() = 0;
    /// How many slots of a cluster no server is known for: `a_slot_of_each_master` leaves them out.
    [[nodiscard]] virtual std::size_t slots_of_nobody() { return 0; }
    /// Asks the sentinels of the address how their group is, in the order of the address; by `until`.
    /// Nothing where there are none.
    virtual void check_sentinels([[maybe_unused]] clock::time_point until,
                                 std::function<void(std::vector<sentinel_checkup>)> done) {
        done({});
    }

    virtual void subscribe(const channel_place& place) = 0;
    virtual void unsubscribe(const channel_place& place) = 0;
    [[nodiscard]] virtual bool subscribed(const channel_place& place) const = 0;
    /// As `subscriber::attend`, where the channels of `slot` are published.
    virtual void attend(std::uint16_t slot, idle_thread& visitor,
                        const std::function<bool()>& others_listen) = 0;
    /// "publish" or "spublish".
    [[nodiscard]] virtual const std::string& publish_command() const noexcept = 0;
    [[nodiscard]] virtual bool clustered() const noexcept = 0;
    /// The most replicas that the master of `slot` has been seen with.
    [[nodiscard]] virtual std::uint32_t replicas_of(std::uint16_t slot) const = 0;
    /// The server that answers for `slot`, as far as it is known.
    [[nodiscard]] virtual store_instance instance_of(std::uint16_t slot) const = 0;
    [[nodiscard]] virtual std::uint64_t commands_sent() const = 0;
};

[[nodiscard]] std::unique_ptr<router> make_standalone(const address& given, router::events told);
/// `patience`: see `master_choice`.
[[nodiscard]] std::unique_ptr<router> make_sentinel(
    const address& given, router::events told,
    clock::duration patience = master_choice::default_patience);
/// What a cluster must be fit for when it is connected to. One that is down grants no locks, but its
/// servers can be looked at.
enum class cluster_use : std::uint8_t { locks, looking };
[[nodiscard]] std::unique_ptr<router> make_cluster(const address& given, router::events told,
                                                   cluster_use use = cluster_use::locks);

}  // namespace holdfast::engines::redis
