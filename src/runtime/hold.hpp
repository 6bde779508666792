#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/token.hpp>

namespace holdfast::detail {

class session;

/// What a lease and the session that renews it share. Everything a holder may ask is answered from
/// here, by the clock, without a lock.
class hold {
public:
    hold(std::shared_ptr<session> from, std::uint64_t number, std::shared_ptr<const std::string> name,
         const owner_id& who, fencing_token token, clock::time_point valid_until,
         clock::duration jeopardy, clock::time_point longest) noexcept
        : session_{std::move(from)},
          number_{number},
          name_{std::move(name)},
          owner_{who},
          jeopardy_{jeopardy},
          longest_{longest},
          token_{token.value},
          valid_until_{valid_until} {}

    [[nodiscard]] const std::shared_ptr<session>& from() const noexcept { return session_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] const std::string& name() const noexcept { return *name_; }
    [[nodiscard]] const owner_id& owner() const noexcept { return owner_; }
    [[nodiscard]] fencing_token token() const noexcept {
        return {token_.load(std::memory_order_relaxed)};
    }
    [[nodiscard]] clock::time_point valid_until() const noexcept {
        return valid_until_.load(std::memory_order_acquire);
    }
    /// Why it is over, or no error.
    [[nodiscard]] errc loss() const noexcept;
    [[nodiscard]] clock::duration remaining() const noexcept {
        return loss() == errc{} ? valid_until() - clock::now() : clock::duration::zero();
    }
    [[nodiscard]] clock::duration jeopardy() const noexcept { return jeopardy_; }
    [[nodiscard]] std::stop_token lost() const noexcept;

    // For the session.
    void set_token(fencing_token token) noexcept {
        token_.store(token.value, std::memory_order_relaxed);
    }
    void set_validity(clock::time_point until) noexcept {
        valid_until_.store(until, std::memory_order_release);
    }
    void set_loss(errc why) noexcept { loss_.store(why, std::memory_order_release); }
    /// Runs the holder's callbacks.
    void tell_loss() noexcept { stop_.request_stop(); }

private:
    std::shared_ptr<session> session_;
    std::uint64_t number_;
    std::shared_ptr<const std::string> name_;
    owner_id owner_;
    clock::duration jeopardy_;
    clock::time_point longest_;
    std::atomic<std::uint64_t> token_;
    std::atomic<clock::time_point> valid_until_;
    std::atomic<errc> loss_{};
    std::stop_source stop_;
};

}  // namespace holdfast::detail
