#include <runtime/attendance.hpp>

#include <exception>
#include <mutex>

namespace holdfast::detail {

/// The thread of a call that waits for its answer. Needs a bell as soon as it is told to sleep.
class attendance::waiting_thread final : public engines::idle_thread {
public:
    waiting_thread(attendance& from, threading::parking_spot& spot) noexcept
        : from_{from}, spot_{spot} {}
    waiting_thread(const waiting_thread&) = delete;
    waiting_thread& operator=(const waiting_thread&) = delete;
    ~waiting_thread() override {
        if (bell_ != nullptr) {
            const std::lock_guard lock{from_.guard_};
            from_.free_bells_.push_back(bell_);
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
            const std::lock_guard lock{from_.guard_};
            if (from_.free_bells_.empty()) {
                from_.free_bells_.reserve(from_.bells_.size() + 1);
                auto made = std::make_unique<threading::bell>();
                if (!*made) {
                    tired_ = true;  // no descriptor is left: it sleeps where it needs none
                    return;
                }
                from_.bells_.push_back(std::move(made));
                from_.free_bells_.push_back(from_.bells_.back().get());
            }
            bell_ = from_.free_bells_.back();
            from_.free_bells_.pop_back();
        } catch (const std::exception&) {
            tired_ = true;
        }
    }

    attendance& from_;
    threading::parking_spot& spot_;
    const threading::bell* bell_{};
    bool tired_{};
};

/// Those who wait for others of this process sleep better elsewhere.
void attendance::attend(call& mine) {
    auto* const lines = store_.offers().lines;
    if (lines == nullptr || !mine.asked_as || mine.asked == nullptr || mine.spot.unparked()) {
        return;
    }
    const store_access::use in_use{store_};
    if (in_use) {
        waiting_thread thread{*this, mine.spot};
        try {
            lines->attend(mine.asked->name, mine.asked->kind, *mine.asked_as, thread);
        } catch (const std::exception&) {
            return;  // the engine's own threads hear the news
        }
    }
}

}  // namespace holdfast::detail
