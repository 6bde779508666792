#include <algorithm>
#include <common/validate.hpp>
#include <records/exchange.hpp>
#include <utility>

namespace holdfast::engines::records {

namespace {

using std::chrono::microseconds;

/// A record that says nothing is kept for so long: revocations and latch requests are remembered, and
/// a write that comes late finds another version.
constexpr std::chrono::minutes remembered{10};
/// The first conflict costs no pause.
constexpr microseconds shortest_pause{200};
constexpr std::chrono::milliseconds longest_pause{20};
constexpr std::chrono::milliseconds pause_after_silence{5};

clock::time_point to_time(microseconds now) noexcept {
    return clock::time_point{now};
}

microseconds last_end(const saved_record& record, clock::time_point now) {
    auto end = now;
    for (const hold& one : record.holds) {
        end = std::max(end, one.expires);
    }
    if (record.latch) {
        end = std::max(end, record.latch->expires);
    }
    return std::chrono::ceil<microseconds>(end.time_since_epoch());
}

/// Tokens of a new record start at the store's time in microseconds: above all that were given before
/// the store removed the last one.
void seed_tokens(saved_record& record, clock::time_point now) {
    const auto since = std::chrono::ceil<microseconds>(now.time_since_epoch()).count();
    record.last_token = std::max(record.last_token, static_cast<std::uint64_t>(since));
}

}  // namespace

exchange::exchange(known_records& known, operation request, clock::time_point deadline,
                   std::uint64_t chance)
    : known_{known}, request_{std::move(request)}, deadline_{deadline}, chance_{chance} {}

exchange::action exchange::start(clock::time_point now) {
    auto known = known_.take(request_.name);
    const auto store_clock = known_.store_clock(now);
    asked_ = action::read;
    if (request_.repetition == operation::kind::looks || !store_clock ||
        known_.doubted(request_.name) || known_.certain_end(request_.name, request_.owner)) {
        return asked_;
    }
    if (known) {
        seen_ = *std::move(known);
    }
    own_end_ = own_end(seen_.record);
    if (own_end_ && *own_end_ <= store_clock->latest) {
        return asked_;
    }
    next_ = seen_.record;
    // What has ended for certain goes. What is granted ends a little sooner than was asked for, which
    // the answer says.
    const auto at = std::chrono::floor<microseconds>(store_clock->earliest);
    drop_ended(next_, at);
    if (seen_.version == 0) {
        seed_tokens(next_, at);
    }
    const auto latest = std::chrono::ceil<microseconds>(store_clock->latest);
    const verdict made = request_.rule(next_, {{at, request_.wall}, latest});
    // That somebody else has the lock, or that nothing is left, must be seen and not remembered.
    return made.changed ? write(made, at) : asked_;
}

exchange::action exchange::on_reply(record_reply reply, clock::time_point sent,
                                    clock::time_point received) {
    using outcome = record_reply::outcome;
    const bool wrote = asked_ == action::replace;
    if (reply.result != outcome::failed) {
        known_.see_clock(to_time(reply.now), sent, received);
    }
    if (reply.result == outcome::done && wrote) {
        known_.settle(request_.name);
        return on_written({reply.current.version, std::move(next_)}, to_time(reply.now), sent,
                          received);
    }
    if (reply.result != outcome::failed) {
        conflicts_ += wrote ? 1 : 0;
        return on_record(std::move(reply.current), to_time(reply.now), sent, received);
    }
    if (wrote && reply.error.code == errc::outcome_unknown) {
        unanswered_edit_ = next_.edit;
        known_.doubt(request_.name, change_.version, received);
        if (own_end_) {
            known_.mistrust(request_.name, request_.owner, *own_end_, received);
        }
    } else if (!unanswered_edit_) {
        if (reply.error.code == errc::outcome_unknown) {
            reply.error.code = errc::store_unavailable;  // nothing was to be changed
        }
        return fail(std::move(reply.error));
    }
    return wait(pause_after_silence, received, action::read);
}

exchange::action exchange::on_pause_over(clock::time_point now) {
    if (now >= deadline_) {
        return give_up();
    }
    return asked_ = after_pause_;
}

exchange::action exchange::on_record(stored_record&& found, clock::time_point store_now,
                                     clock::time_point sent, clock::time_point now) {
    if (const auto base = known_.doubted(request_.name); base && *base != found.version) {
        known_.settle(request_.name);
    }
    seen_ = {found.version, {}};
    if (found.version != 0 && !found.bytes.empty()) {
        auto decoded = decode(found.bytes);
        if (!decoded) {
            return fail({errc::store_error,
                         "the record of " + in_quotes(request_.name) +
                             " is damaged, or of a newer holdfast; remove it when nobody uses it"});
        }
        seen_.record = *std::move(decoded);
    }
    if (has_taken_effect()) {
        return on_written(std::move(seen_), store_now, sent, now);
    }
    return decide(store_now, now);
}

/// A rule that has decided once more since answers for its last write only, so it decides again: it
/// finds what the write before made, and answers the same. What is done only once counts, whichever
/// write did it.
bool exchange::has_taken_effect() const noexcept {
    const bool shows_it =
        unanswered_edit_ && seen_.version != 0 && seen_.record.edit == *unanswered_edit_;
    return shows_it &&
           (next_.edit == *unanswered_edit_ || request_.repetition == operation::kind::once);
}

exchange::action exchange::decide(clock::time_point store_now, clock::time_point now) {
    next_ = seen_.record;
    drop_ended(next_, store_now);
    if (seen_.version == 0) {
        seed_tokens(next_, store_now);
    }
    const bool taken_back = take_back_own(store_now, now);
    own_end_ = own_end(next_);
    const bool looks = request_.repetition == operation::kind::looks;
    verdict made = request_.rule(next_, {{store_now, request_.wall}, store_now});
    made.freed = made.freed || taken_back;
    if (!looks && (made.changed || taken_back || known_.doubted(request_.name))) {
        const action next = write(made, store_now);
        if (conflicts_ < 2) {
            return next;
        }
        const auto longest = shortest_pause * (1U << std::min(conflicts_, 10U));
        return wait(std::min<clock::duration>(longest, longest_pause), now, next);
    }
    if (unanswered_edit_ && request_.repetition == operation::kind::once) {
        return give_up();
    }
    return settled(std::move(seen_));
}

bool exchange::take_back_own(clock::time_point store_now, clock::time_point now) {
    const auto certain = known_.certain_end(request_.name, request_.owner);
    const auto recorded = own_end(next_);
    if (!certain || !recorded) {
        return false;
    }
    if (*certain > store_now) {
        // What the record says of the hold was written in time.
        known_.mistrust(request_.name, request_.owner, *recorded, now);
        return false;
    }
    std::erase_if(next_.holds, [&](const hold& one) { return one.owner == request_.owner; });
    return true;
}

std::optional<clock::time_point> exchange::own_end(const saved_record& record) const {
    if (request_.owner == owner_id{}) {
        return std::nullopt;
    }
    const auto own = std::find_if(record.holds.begin(), record.holds.end(),
                                  [&](const hold& one) { return one.owner == request_.owner; });
    return own == record.holds.end() ? std::nullopt : std::optional{own->expires};
}

exchange::action exchange::write(const verdict& made, clock::time_point store_now) {
    next_.edit = random();
    change_ = {.name = request_.name,
               .version = seen_.version,
               .bytes = encode(next_),
               .needed_until = last_end(next_, store_now) + remembered,
               .frees = made.freed};
    return asked_ = action::replace;
}

exchange::action exchange::on_written(known_records::entry&& written, clock::time_point store_now,
                                      clock::time_point sent, clock::time_point now) {
    confirmed_ = {sent, store_now};
    if (own_end_ && *own_end_ <= store_now) {
        known_.mistrust(request_.name, request_.owner, *own_end_, now);
        unanswered_edit_.reset();
        seen_ = std::move(written);
        return decide(store_now, now);
    }
    return settled(std::move(written));
}

exchange::action exchange::settled(known_records::entry&& current) {
    known_.trust(request_.name, request_.owner);
    known_.put(request_.name, std::move(current));
    return asked_ = action::finish;
}

exchange::action exchange::wait(clock::duration longest, clock::time_point now, action then) {
    if (now >= deadline_) {
        return give_up();
    }
    const auto steps = static_cast<std::uint64_t>(longest / microseconds{1}) + 1;
    pause_ = std::min<clock::duration>(microseconds{1 + random() % steps}, deadline_ - now);
    after_pause_ = then;
    return asked_ = action::pause;
}

exchange::action exchange::fail(failure why) {
    error_ = std::move(why);
    return asked_ = action::finish;
}

exchange::action exchange::give_up() {
    if (unanswered_edit_) {
        return fail({errc::outcome_unknown, "the store did not answer"});
    }
    return fail({errc::store_unavailable,
                 "others changed the record " + std::to_string(conflicts_) + " times meanwhile"});
}

std::chrono::milliseconds exchange::shortened_ttl(clock::time_point expires,
                                                  std::chrono::milliseconds ttl,
                                                  clock::time_point asked_at) const {
    using std::chrono::milliseconds;
    if (!confirmed_) {
        return {};
    }
    const auto left = expires - confirmed_->store_now + (confirmed_->sent - asked_at);
    return left >= ttl ? milliseconds{}
                       : std::max(std::chrono::floor<milliseconds>(left), milliseconds{1});
}

/// splitmix64.
std::uint64_t exchange::random() noexcept {
    chance_ += 0x9e3779b97f4a7c15U;
    auto mixed = chance_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
}

}  // namespace holdfast::engines::records
