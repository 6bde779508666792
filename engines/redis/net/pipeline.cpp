#include <algorithm>
#include <redis/net/pipeline.hpp>
#include <utility>

namespace holdfast::engines::redis {

bool pipeline::append(request& added) {
    const std::size_t before = collected_.size();
    const auto [wanted, ignored] = added.encode(collected_, facts_);
    if (wanted == 0) {
        collected_.resize(before);
        return false;
    }
    added.outcome.replies.reserve(wanted);
    added.first_collected = before == 0;
    pending_.push_back({.asked = &added,
                        .replies_left = wanted + ignored,
                        .replies_wanted = wanted,
                        .begins = taken_ + before,
                        .size = collected_.size() - before});
    ++collected_requests_;
    commands_ += wanted + ignored;
    return true;
}

bool pipeline::due(clock::time_point now) const noexcept {
    return !collected_.empty() &&
           (under_way() <= collected_requests_ || now - last_write_ >= longest_collection);
}

void pipeline::take_for_writing(std::string& bytes, clock::time_point now) {
    bytes.clear();
    bytes.swap(collected_);
    taken_ += bytes.size();
    collected_requests_ = 0;
    last_write_ = now;
}

bool pipeline::unsent(const request& asked) const noexcept {
    for (auto each = pending_.rbegin(); each != pending_.rend() && each->begins >= taken_; ++each) {
        if (each->asked == &asked) {
            return true;
        }
    }
    return false;
}

failure pipeline::accept(std::vector<value>& answers, const std::function<void(request&)>& ended) {
    failure surplus;
    for (value& answer : answers) {
        if (pending_.empty()) {
            surplus = {errc::store_unavailable, "the server said something that nobody had asked"};
            break;
        }
        entry& oldest = pending_.front();
        if (oldest.asked != nullptr && oldest.replies_left <= oldest.replies_wanted) {
            oldest.asked->outcome.replies.push_back(std::move(answer));
        }
        if (--oldest.replies_left > 0) {
            continue;
        }
        request* const asked = oldest.asked;
        pending_.pop_front();
        if (asked != nullptr) {
            ended(*asked);
        }
    }
    answers.clear();
    return surplus;
}

pipeline::reach pipeline::abandon(const request& late) {
    for (entry& each : pending_) {
        if (each.asked != &late) {
            continue;
        }
        if (each.begins >= taken_) {
            drop_unsent([&](const entry& one) { return one.asked == &late; });
            return reach::unsent;
        }
        each.hopeless_at = late.hopeless_at();
        each.asked = nullptr;
        return reach::sent;
    }
    return reach::unsent;
}

void pipeline::abandon_all(const std::function<bool(const request&)>& is_late,
                           const std::function<void(request&, reach)>& ended) {
    std::vector<request*> not_sent;
    drop_unsent([&](const entry& one) {
        const bool unwanted = is_late(*one.asked);
        if (unwanted) {
            not_sent.push_back(one.asked);
        }
        return unwanted;
    });
    for (entry& each : pending_) {
        if (each.asked != nullptr && is_late(*each.asked)) {
            each.hopeless_at = each.asked->hopeless_at();
            ended(*std::exchange(each.asked, nullptr), reach::sent);
        }
    }
    for (request* const each : not_sent) {
        ended(*each, reach::unsent);
    }
}

void pipeline::drop_unsent(const std::function<bool(const entry&)>& unwanted) {
    const auto first = std::partition_point(pending_.begin(), pending_.end(),
                                            [&](const entry& each) { return each.begins < taken_; });
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

bool pipeline::hopeless(clock::time_point now) const noexcept {
    return !pending_.empty() && pending_.front().asked == nullptr &&
           pending_.front().hopeless_at <= now;
}

request* pipeline::next_reader() const noexcept {
    for (auto each = pending_.rbegin(); each != pending_.rend(); ++each) {
        if (each->asked != nullptr && each->asked->from == caller::may_block) {
            return each->asked;
        }
    }
    return nullptr;
}

void pipeline::each(const std::function<void(request&, reach)>& visit) const {
    for (const entry& one : pending_) {
        if (one.asked != nullptr) {
            visit(*one.asked, one.begins < taken_ ? reach::sent : reach::unsent);
        }
    }
}

}  // namespace holdfast::engines::redis
