#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <common/callback_gate.hpp>
#include <holdfast/engine.hpp>
#include <redis/topology/router.hpp>

namespace holdfast::engines::redis {

/// The listeners of all channels. One subscription serves all listeners of a channel.
///
/// Thread safety: all functions may be called from any thread. Listeners are called with no lock held,
/// and never after `close`.
class watches : public std::enable_shared_from_this<watches> {
public:
    using listener = std::function<void(std::string_view message)>;

    /// Must be called before anything is listened to.
    void connect(router* through) noexcept { router_ = through; }
    /// Afterwards no listener is running, and none will be.
    void close();

    class listening;
    enum class beginning : std::uint8_t {
        told,             ///< the listener hears of it when notifications begin to flow
        told_if_awaited,  ///< only if `active()` has returned false: a waiter that has not looked yet
                          ///< will look, and need not ask the store twice
    };
    /// Ends when the result is destroyed. The listener also hears an empty message whenever
    /// notifications may have been missed.
    [[nodiscard]] std::unique_ptr<listening> listen(channel_place place, beginning first,
                                                    listener callback);
    /// How many of a channel's subscribers are we ourselves: 1 or 0.
    [[nodiscard]] std::uint32_t own_subscriptions(const std::string& channel) const;
    /// How many listen, to any channel.
    [[nodiscard]] std::size_t listeners() const noexcept { return listeners_.load(); }

    // From the router.
    void heard(const std::string& channel, std::string_view message);
    /// Notifications for the channel flow from now on.
    void flows(const std::string& channel);

private:
    struct ear {
        std::shared_ptr<listener> callback;
        bool awaits_beginning{};
    };
    struct entry {
        channel_place place;
        std::map<std::uint64_t, ear> listeners;
        bool began{};
    };

    [[nodiscard]] bool look(const channel_place& place, std::uint64_t number);
    void leave(const std::string& channel, std::uint64_t number);
    void tell(const std::vector<std::shared_ptr<listener>>& told, std::string_view message);

    router* router_{};
    callback_gate gate_;
    mutable std::mutex guard_;
    std::map<std::string, entry, std::less<>> channels_;
    std::uint64_t last_number_{};
    std::atomic<std::size_t> listeners_{0};
    bool closed_{};
};

/// Somebody listens.
class watches::listening {
public:
    listening(std::weak_ptr<watches> all, channel_place place, std::uint64_t number)
        : all_{std::move(all)}, place_{std::move(place)}, number_{number} {}
    listening(const listening&) = delete;
    listening& operator=(const listening&) = delete;
    ~listening();

    [[nodiscard]] bool active() const noexcept;

private:
    std::weak_ptr<watches> all_;
    channel_place place_;
    std::uint64_t number_;
};

}  // namespace holdfast::engines::redis
