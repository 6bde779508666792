#include <redis/topology/sentinel_informer.hpp>

#include <algorithm>
#include <array>
#include <common/poll_timeout.hpp>
#include <common/quiet_thread.hpp>
#include <iterator>
#include <redis/net/foreign.hpp>
#include <utility>

#include <poll.h>

namespace holdfast::engines::redis {

namespace {

constexpr std::string_view no_answer = "does not answer";

}  // namespace

sentinel_informer::sentinel_informer(node_address where, connection_settings settings,
                                     std::string service, events told)
    : where_{std::move(where)},
      settings_{std::move(settings)},
      told_{std::move(told)},
      dialogue_{std::move(service), settings_.login},
      thread_{quiet_thread([this] { run(); })} {}

sentinel_informer::~sentinel_informer() {
    stopping_.store(true);
    bell_.ring();
}

void sentinel_informer::ask() {
    if (!wanted_.exchange(true)) {
        bell_.ring();
    }
}

void sentinel_informer::check(clock::time_point until, std::function<void(sentinel_checkup)> done) {
    {
        const std::lock_guard lock{checks_guard_};
        checks_.push_back({until, std::move(done)});
    }
    bell_.ring();
}

bool sentinel_informer::check_wanted() {
    const std::lock_guard lock{checks_guard_};
    return std::any_of(checks_.begin(), checks_.end(),
                       [](const check_wish& each) { return !each.asked; });
}

bool sentinel_informer::begin_checks() {
    const std::lock_guard lock{checks_guard_};
    for (auto& each : checks_) {
        each.asked = true;
    }
    return !checks_.empty();
}

void sentinel_informer::end_checks(const std::function<bool(const check_wish&)>& are_over,
                                   const sentinel_checkup& said) {
    std::vector<check_wish> ended;
    {
        const std::lock_guard lock{checks_guard_};
        const auto over = std::stable_partition(checks_.begin(), checks_.end(),
                                                [&](const auto& each) { return !are_over(each); });
        std::move(over, checks_.end(), std::back_inserter(ended));
        checks_.erase(over, checks_.end());
    }
    for (const auto& each : ended) {
        each.done(said);
    }
}

void sentinel_informer::fail_checks(failure reason) {
    end_checks([](const check_wish&) { return true; },
               {.where = where_, .silence = std::move(reason), .others = {}, .quorum = {}});
}

clock::time_point sentinel_informer::end_late_checks(clock::time_point now) {
    auto next = clock::time_point::max();
    bool late = false;
    {
        const std::lock_guard lock{checks_guard_};
        for (const auto& each : checks_) {
            late = late || each.until <= now;
            next = each.until > now ? std::min(next, each.until) : next;
        }
    }
    if (late) {
        end_checks([now](const check_wish& each) { return each.until <= now; },
                   {.where = where_,
                    .silence = {errc::store_unavailable, std::string{no_answer}},
                    .others = {},
                    .quorum = {}});
    }
    return next;
}

void sentinel_informer::run() {
    while (!stopping_.load()) {
        failure reason = converse();
        stream_.reset();
        if (stopping_.load()) {
            break;
        }
        const auto original = reason;
        const bool named = reason.detail.starts_with(where_.text());
        reason.detail = (named ? "sentinel " : "sentinel " + where_.text() + ": ") + reason.detail;
        told_.silent(reason);
        fail_checks(original);
        const auto until =
            clock::now() + std::min<clock::duration>(reconnecting_.next(), longest_pause);
        static_cast<void>(wait(-1, 0, until, interruption::check));
    }
    fail_checks({errc::shut_down, "shutdown was called, or the client was destroyed"});
}

failure sentinel_informer::converse() {
    const net::waiting patiently = [this](int descriptor, short awaited, clock::time_point until) {
        return wait(descriptor, awaited, until);
    };
    auto opened = net::stream::open(where_, settings_.tls, redis_without_tls,
                                    clock::now() + settings_.connect_timeout, patiently);
    if (opened.error) {
        return std::move(opened.error);
    }
    stream_ = std::move(opened.connected);
    failure reason = talk();
    return heard_ || stopping_.load() ? reason : explain_silence(std::move(reason));
}

failure sentinel_informer::explain_silence(failure reason) {
    const net::waiting patiently = [this](int descriptor, short awaited, clock::time_point until) {
        return wait(descriptor, awaited, until);
    };
    if (!settings_.tls && reason.code == errc::store_unavailable &&
        net::stream::answers_tls(where_, clock::now() + for_guess, patiently)) {
        return expects_tls();
    }
    return reason;
}

failure sentinel_informer::talk() {
    reader_ = std::make_unique<reply_reader>();
    asked_at_ = clock::now();
    ask_at_ = asked_at_ + usual_pause;
    failure reason = send(dialogue_.opening());
    while (!reason && !stopping_.load()) {
        note_wish();
        const bool settled = dialogue_.settled();
        if (settled && (check_wanted() || clock::now() >= ask_at_)) {
            reason = put_question();
            continue;
        }
        const auto until = settled ? ask_at_ : asked_at_ + patience;
        const auto by = settled ? interruption::wish : interruption::end;
        if (!wait(stream_->socket(), POLLIN, until, by) && !settled) {
            return {errc::store_unavailable, std::string{no_answer}};
        }
        reason = receive();
    }
    return reason;
}

/// Whoever wants to know soon does so again and again as long as the trouble lasts.
void sentinel_informer::note_wish() {
    if (!wanted_.exchange(false)) {
        return;
    }
    const auto now = clock::now();
    const bool calm = now - asked_at_ > 2 * longest_pause;
    if (calm) {
        asking_.succeeded();
    }
    const auto pause =
        calm ? clock::duration::zero() : std::min<clock::duration>(asking_.next(), longest_pause);
    ask_at_ = std::min(ask_at_, std::max(now, asked_at_ + pause));
}

failure sentinel_informer::put_question() {
    asked_at_ = clock::now();
    ask_at_ = asked_at_ + usual_pause;
    return send(begin_checks() ? dialogue_.checkup() : dialogue_.question());
}

failure sentinel_informer::send(const std::string& bytes) {
    std::string_view left = bytes;
    while (!left.empty() && !stopping_.load()) {
        const net::io_result result = stream_->write_now(left);
        if (result.lost()) {
            return result.error;
        }
        left.remove_prefix(result.bytes);
        if (result.outcome == net::io_result::status::again) {
            if (!wait(stream_->socket(), result.events, asked_at_ + patience)) {
                return {errc::store_unavailable, "takes no questions"};
            }
        }
    }
    return {};
}

failure sentinel_informer::receive() {
    std::array<char, 4096> buffer{};
    for (;;) {
        const net::io_result result = stream_->read_now(buffer);
        if (result.lost()) {
            return result.error;
        }
        if (result.outcome == net::io_result::status::again) {
            return {};
        }
        const std::string_view words{buffer.data(), result.bytes};
        if (failure reason = std::exchange(heard_, true) ? failure{} : foreign_protocol(words)) {
            return reason;
        }
        reader_->feed(words);
        value answer;
        auto progress = reader_->next(answer);
        for (; progress == reply_reader::progress::complete; progress = reader_->next(answer)) {
            if (failure reason = accept(answer)) {
                return reason;
            }
        }
        if (progress == reply_reader::progress::broken) {
            return {errc::bad_configuration, "this is not a sentinel (" + reader_->problem() + ")"};
        }
    }
}

failure sentinel_informer::accept(const value& answer) {
    auto news = dialogue_.take(answer);
    if (news.error) {
        return std::move(news.error);
    }
    if (news.view) {
        reconnecting_.succeeded();
        told_.told(*news.view);
    }
    if (news.checkup) {
        news.checkup->where = where_;
        end_checks([](const check_wish& each) { return each.asked; }, *news.checkup);
    }
    if (news.switched) {
        ask_at_ = clock::now();
    }
    return {};
}

bool sentinel_informer::wait(int descriptor, short awaited, clock::time_point until, interruption by) {
    for (auto now = clock::now(); now < until && !stopping_.load(); now = clock::now()) {
        const bool wished = by == interruption::wish && wanted_.load();
        if (wished || (by != interruption::end && check_wanted())) {
            return false;
        }
        const auto next = std::min(until, end_late_checks(now));
        if (bell_.sleep(descriptor, awaited, poll_timeout(next, now)) != 0) {
            return !stopping_.load();
        }
    }
    return false;
}

}  // namespace holdfast::engines::redis
