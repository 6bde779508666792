#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/info.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/token.hpp>
#include <threading/primitives.hpp>

namespace holdfast::detail {

class session;

/// What a lease and the session that renews it share. Everything a holder may ask is answered from
/// here, by the clock, without a lock.
///
/// Only holders own it. When the last of them is gone and it was never released, nobody could release
/// it any more: it is lost then, and given back in the background.
class hold {
public:
    hold(std::shared_ptr<session> from, std::uint64_t number, std::shared_ptr<const std::string> name,
         std::int64_t sequence, fencing_token token, clock::time_point valid_until,
         clock::duration jeopardy, clock::time_point longest, lock_kind kind, claim_mode mode) noexcept
        : session_{std::move(from)},
          number_{number},
          name_{std::move(name)},
          sequence_{sequence},
          jeopardy_{jeopardy},
          longest_{longest},
          kind_{kind},
          mode_{mode},
          token_{token.value},
          valid_until_{valid_until} {}
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    ~hold();

    [[nodiscard]] const std::shared_ptr<session>& from() const noexcept { return session_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] const std::string& name() const noexcept { return *name_; }
    [[nodiscard]] owner_id owner() const noexcept;
    [[nodiscard]] fencing_token token() const noexcept {
        return {token_.load(std::memory_order_relaxed)};
    }
    [[nodiscard]] clock::time_point valid_until() const noexcept {
        return valid_until_.load(std::memory_order_acquire);
    }
    /// Why it is over, or no error.
    [[nodiscard]] errc loss() const noexcept;
    /// The same in words, as far as the store gave any.
    [[nodiscard]] std::string loss_detail() const {
        return loss_.load() == errc{} ? std::string{} : loss_detail_;
    }
    [[nodiscard]] clock::duration remaining() const noexcept {
        return loss() == errc{} ? valid_until() - clock::now() : clock::duration::zero();
    }
    [[nodiscard]] clock::duration jeopardy() const noexcept { return jeopardy_; }
    [[nodiscard]] std::stop_token lost() const noexcept;

    [[nodiscard]] lock_kind kind() const noexcept { return kind_; }
    [[nodiscard]] claim_mode mode() const noexcept { return mode_; }

    /// Whether it was released.
    [[nodiscard]] bool given_back() const noexcept { return given_back_; }

    /// The thread that may enter it again; zero: it is of no recursive lock.
    [[nodiscard]] std::uint64_t reentrant_thread() const noexcept { return reentrant_thread_; }

    // For the session.
    void set_reentrant(std::uint64_t thread) noexcept { reentrant_thread_ = thread; }
    void set_given_back() noexcept { given_back_ = true; }
    /// It was converted.
    void set_mode(claim_mode mode) noexcept { mode_ = mode; }
    void set_token(fencing_token token) noexcept {
        token_.store(token.value, std::memory_order_relaxed);
    }
    void set_validity(clock::time_point until) noexcept {
        valid_until_.store(until, std::memory_order_release);
    }
    void set_loss(errc why, const std::string& detail = {}) {
        if (!detail.empty() && loss_.load() == errc{}) {
            loss_detail_ = detail;  // before the code: whoever sees that may read this
        }
        loss_.store(why);
    }
    /// Runs the holder's callbacks.
    void tell_loss() noexcept;

private:
    std::shared_ptr<session> session_;
    std::uint64_t number_;
    std::shared_ptr<const std::string> name_;
    /// The owner is the session's client, with this number.
    std::int64_t sequence_;
    clock::duration jeopardy_;
    clock::time_point longest_;
    lock_kind kind_;
    claim_mode mode_;
    threading::atomic<std::uint64_t> token_;
    threading::atomic<clock::time_point> valid_until_;
    threading::atomic<errc> loss_{};
    std::string loss_detail_;
    std::uint64_t reentrant_thread_{};
    bool given_back_{};
    /// Made when somebody asks for it: most holders never do.
    mutable threading::atomic<std::stop_source*> stop_{nullptr};
};

}  // namespace holdfast::detail
