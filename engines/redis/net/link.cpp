#include <algorithm>
#include <redis/net/link.hpp>
#include <utility>

namespace holdfast::engines::redis {

link::link(std::unique_ptr<net::stream> connected, std::unique_ptr<reply_reader> answers,
           server_facts facts)
    : socket_{std::move(connected)}, answers_{std::move(answers)}, facts_{facts} {}

bool link::append(request& added) {
    const std::size_t before = collected_.size();
    const auto [wanted, ignored] = added.encode(collected_, facts_);
    if (wanted == 0) {
        collected_.resize(before);
        return false;
    }
    added.outcome.replies.reserve(wanted);
    added.first_collected = before == 0;
    pending_.push_back({.who = &added,
                        .replies_left = wanted + ignored,
                        .replies_wanted = wanted,
                        .begins = taken_ + before,
                        .size = collected_.size() - before});
    ++collected_requests_;
    commands_ += wanted + ignored;
    return true;
}

bool link::due(clock::time_point now) const noexcept {
    return !collected_.empty() &&
           (under_way() <= collected_requests_ || now - last_write_ >= longest_collection);
}

void link::take_for_writing(clock::time_point now) {
    in_writing_.clear();
    written_ = 0;
    in_writing_.swap(collected_);
    taken_ += in_writing_.size();
    collected_requests_ = 0;
    last_write_ = now;
}

net::io_result link::write_taken() {
    net::io_result result;
    while (written_ < in_writing_.size() && result.outcome == net::io_result::status::done) {
        result = socket_->write_now(std::span{in_writing_}.subspan(written_));
        written_ += result.bytes;
    }
    return result;
}

void link::not_written() noexcept {
    taken_ -= in_writing_.size() - written_;
}

bool link::unsent(const request& asked) const noexcept {
    for (auto each = pending_.rbegin(); each != pending_.rend() && each->begins >= taken_; ++each) {
        if (each->who == &asked) {
            return true;
        }
    }
    return false;
}

net::io_result link::read(clock::time_point until, clock::time_point now) {
    return absorb(socket_->read_some(buffer_, until, now));
}

net::io_result link::read_now() {
    return absorb(socket_->read_now(buffer_));
}

net::io_result link::absorb(net::io_result result) {
    if (result.outcome != net::io_result::status::done) {
        return result;
    }
    answers_->feed({buffer_.data(), result.bytes});
    auto progress = answers_->next(arrived_.emplace_back());
    while (progress == reply_reader::progress::complete) {
        progress = answers_->next(arrived_.emplace_back());
    }
    arrived_.pop_back();
    if (progress == reply_reader::progress::broken) {
        result.outcome = net::io_result::status::failed;
        result.error = {errc::store_unavailable,
                        "the server's answer makes no sense: " + answers_->problem()};
    }
    return result;
}

failure link::accept_answers(const std::function<void(request&)>& ended) {
    failure surplus;
    for (value& answer : arrived_) {
        if (pending_.empty()) {
            surplus = {errc::store_unavailable, "the server said something that nobody had asked"};
            break;
        }
        record& oldest = pending_.front();
        if (oldest.who != nullptr && oldest.replies_left <= oldest.replies_wanted) {
            oldest.who->outcome.replies.push_back(std::move(answer));
        }
        if (--oldest.replies_left > 0) {
            continue;
        }
        request* const who = oldest.who;
        pending_.pop_front();
        if (who != nullptr) {
            ended(*who);
        }
    }
    arrived_.clear();
    return surplus;
}

link::reach link::abandon(const request& late) {
    for (record& each : pending_) {
        if (each.who != &late) {
            continue;
        }
        if (each.begins >= taken_) {
            drop_unsent([&](const record& one) { return one.who == &late; });
            return reach::unsent;
        }
        each.hopeless_at = late.hopeless_at();
        each.who = nullptr;
        return reach::sent;
    }
    return reach::unsent;
}

void link::abandon_all(const std::function<bool(const request&)>& is_late,
                       const std::function<void(request&, reach)>& ended) {
    std::vector<request*> not_sent;
    drop_unsent([&](const record& one) {
        const bool unwanted = is_late(*one.who);
        if (unwanted) {
            not_sent.push_back(one.who);
        }
        return unwanted;
    });
    for (record& each : pending_) {
        if (each.who != nullptr && is_late(*each.who)) {
            each.hopeless_at = each.who->hopeless_at();
            ended(*std::exchange(each.who, nullptr), reach::sent);
        }
    }
    for (request* const each : not_sent) {
        ended(*each, reach::unsent);
    }
}

void link::drop_unsent(const std::function<bool(const record&)>& unwanted) {
    const auto first = std::partition_point(pending_.begin(), pending_.end(),
                                            [&](const record& each) { return each.begins < taken_; });
    std::string kept;
    auto place = first;
    for (auto each = first; each != pending_.end(); ++each) {
        if (unwanted(*each)) {
            commands_ -= each->replies_left;
            continue;
        }
        const std::size_t begins = each->begins - taken_;
        each->begins = taken_ + kept.size();
        kept.append(collected_, begins, each->size);
        *place++ = *each;
    }
    collected_requests_ = static_cast<std::size_t>(place - first);
    pending_.erase(place, pending_.end());
    collected_ = std::move(kept);
}

bool link::hopeless(clock::time_point now) const noexcept {
    return !pending_.empty() && pending_.front().who == nullptr && pending_.front().hopeless_at <= now;
}

request* link::next_reader() const noexcept {
    for (auto each = pending_.rbegin(); each != pending_.rend(); ++each) {
        if (each->who != nullptr && each->who->from == caller::may_block) {
            return each->who;
        }
    }
    return nullptr;
}

void link::each(const std::function<void(request&, reach)>& visit) const {
    for (const record& one : pending_) {
        if (one.who != nullptr) {
            visit(*one.who, one.begins < taken_ ? reach::sent : reach::unsent);
        }
    }
}

}  // namespace holdfast::engines::redis
