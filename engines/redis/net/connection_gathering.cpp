#include <common/gathering.hpp>
#include <redis/net/connection_state.hpp>
#include <utility>

/// How a thread that asked several servers reads their answers itself.
namespace holdfast::engines::redis {

class connection::state::unread_answers final : public unread {
public:
    unread_answers(std::shared_ptr<state> of, std::shared_ptr<link> on)
        : of_{std::move(of)}, on_{std::move(on)} {}
    unread_answers(const unread_answers&) = delete;
    unread_answers& operator=(const unread_answers&) = delete;
    ~unread_answers() override { leave(true); }

    [[nodiscard]] int descriptor() const noexcept override { return on_->socket().socket(); }
    [[nodiscard]] bool fetch() override {
        if (!of_->fetch(on_)) {
            on_.reset();
        }
        return on_ != nullptr;
    }
    void put_off() override { leave(false); }

private:
    void leave(bool soon) {
        if (on_) {
            of_->end_fetching(on_, soon);
            on_.reset();
        }
    }

    std::shared_ptr<state> of_;
    /// Nothing when it is no longer ours to read.
    std::shared_ptr<link> on_;
};

bool connection::state::leave_to_gatherer() {
    auto* const here = gathering::here();
    if (here == nullptr) {
        return false;
    }
    link_->reading = link::reader::gatherer;
    here->add(std::make_unique<unread_answers>(shared_from_this(), link_));
    return true;
}

/// False when there is nothing left to fetch; somebody else may be reading, then.
bool connection::state::fetch(const std::shared_ptr<link>& on) {
    aftermath after;
    // Until nothing comes: bytes that TLS has already taken from the socket do not show there.
    for (bool came = true; came;) {
        net::io_result result = on->read_now();
        came = result.outcome != net::io_result::status::again;
        guard lock{mutex_};
        if (on == link_) {
            absorb(lock, std::move(result), after);
        }
        const bool over = on != link_ || on->idle();
        if (on == link_ && over) {
            on->reading = link::reader::none;
        }
        lock.unlock();
        settle(after);
        if (over) {
            return false;
        }
    }
    return true;
}

void connection::state::end_fetching(const std::shared_ptr<link>& on, bool soon) {
    aftermath after;
    guard lock{mutex_};
    if (on == link_ && (soon || on->collected() || on->next_reader() != nullptr)) {
        pass_on(after);
    } else if (on == link_) {
        on->reading = link::reader::none;
        put_off_at_ = clock::now();
        if (next_minding_ == clock::time_point::max()) {
            next_minding_ = put_off_at_ + put_off_for;
            wake_background();
        }
    }
    lock.unlock();
    settle(after);
}

/// Whether answers are due that nobody reads.
bool connection::state::put_off() const noexcept {
    return link_ && link_->reading == link::reader::none && !link_->idle();
}

/// Goes on as long as threads come and put off: waking the background each time would cost more than
/// the reading. True when it has become the reader.
bool connection::state::mind_what_was_put_off() {
    if (next_minding_ == clock::time_point::max()) {
        return false;
    }
    const auto now = clock::now();
    if (put_off()) {
        next_minding_ = put_off_at_ + put_off_for;
        if (now < next_minding_ && now < next_expiry_) {
            return false;
        }
        link_->reading = link::reader::background;
        next_minding_ = clock::time_point::max();
        return true;
    }
    const bool still_used = std::exchange(minded_, put_off_at_) != put_off_at_;
    next_minding_ = still_used ? now + put_off_for : clock::time_point::max();
    return false;
}

}  // namespace holdfast::engines::redis
