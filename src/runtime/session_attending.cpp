#include <runtime/session_call.hpp>

#include <exception>

namespace holdfast::detail {

/// The thread of a call that waits for its answer. Needs a bell as soon as it is told to sleep.
class session::waiting_caller final : public engines::idle_thread {
public:
    waiting_caller(session& whose, parking_spot& spot) noexcept : whose_{whose}, spot_{spot} {}
    waiting_caller(const waiting_caller&) = delete;
    waiting_caller& operator=(const waiting_caller&) = delete;
    ~waiting_caller() override {
        if (bell_ != nullptr) {
            const std::lock_guard lock{whose_.guard_};
            whose_.free_bells_.push_back(bell_);
        }
    }

    [[nodiscard]] bool called_away() const noexcept override { return tired_ || spot_.unparked(); }
    [[nodiscard]] bool sleep(int descriptor) noexcept override {
        if (bell_ == nullptr) {
            take_bell();
        }
        return bell_ != nullptr && spot_.park_at(descriptor, *bell_);
    }

private:
    void take_bell() noexcept {
        try {
            const std::lock_guard lock{whose_.guard_};
            if (whose_.free_bells_.empty()) {
                whose_.free_bells_.reserve(whose_.bells_.size() + 1);
                whose_.bells_.push_back(std::make_unique<doorbell>());
                whose_.free_bells_.push_back(whose_.bells_.back().get());
            }
            bell_ = whose_.free_bells_.back();
            whose_.free_bells_.pop_back();
        } catch (const std::exception&) {
            tired_ = true;  // no descriptor is left: it sleeps where it needs none
        }
    }

    session& whose_;
    parking_spot& spot_;
    const doorbell* bell_{};
    bool tired_{};
};

/// Whoever has asked the store waits for what the store says next: its thread may as well be the one
/// that hears it. Those who wait for others of this process sleep better elsewhere.
void session::attend(call& mine) {
    if (abilities_.lines == nullptr || !mine.asked_as || mine.asked == nullptr ||
        mine.spot.unparked()) {
        return;
    }
    const engine_use in_use{*this};
    if (in_use) {
        waiting_caller thread{*this, mine.spot};
        try {
            abilities_.lines->attend(mine.asked->name, mine.asked->kind, *mine.asked_as, thread);
        } catch (const std::exception&) {
            return;  // the engine's own threads hear the news
        }
    }
}

}  // namespace holdfast::detail
