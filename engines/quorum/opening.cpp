#include <quorum/opening.hpp>

#include <common/quiet_thread.hpp>
#include <quorum/engine.hpp>
#include <quorum/late_member.hpp>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::engines {

std::unique_ptr<engine> open_quorum(std::string_view rest, const client_identity& identity);
address_summary summarise_quorum(std::string_view rest);

std::unique_ptr<engine> open_quorum(std::string_view rest, const client_identity& identity) {
    return open_quorum(quorums::parse_quorum(rest), identity);
}

}  // namespace holdfast::engines

namespace holdfast::engines::quorums {

namespace {

using std::chrono::milliseconds;

[[noreturn]] void refuse(std::string why) {
    failure{errc::bad_configuration, std::move(why)}.raise("cannot use the quorum");
}

[[nodiscard]] milliseconds parse_duration(std::string_view name, std::string_view text) {
    const std::map<std::string_view, milliseconds> units{{"ms", milliseconds{1}},
                                                         {"s", std::chrono::seconds{1}},
                                                         {"m", std::chrono::minutes{1}},
                                                         {"h", std::chrono::hours{1}}};
    std::uint32_t number{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto unit = units.find({end, static_cast<std::size_t>(text.data() + text.size() - end)});
    if (problem != std::errc{} || unit == units.end()) {
        refuse("write " + std::string{name} + " as 500ms, 30s, 2m or 1h");
    }
    return number * unit->second;
}

void parse_option(std::string_view text, quorum& result) {
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    const auto value = equals == std::string_view::npos ? "" : text.substr(equals + 1);
    if (name == "member_timeout") {
        result.member_timeout = parse_duration(name, value);
    } else if (name == "drift") {
        result.drift = parse_duration(name, value);
    } else if (name == "restart_grace") {
        result.restart_grace = parse_duration(name, value);
    } else {
        // Anything else may be a part of a password with white space in it.
        const bool plain = equals != std::string_view::npos &&
                           std::all_of(name.begin(), name.end(),
                                       [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
        refuse((plain ? "there is no option \"" + std::string{name} + "\"" : "this is no option") +
               "; there are member_timeout, drift and restart_grace");
    }
}

[[nodiscard]] std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto begin = text.find_first_not_of(separators);
        if (begin == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(begin);
        const auto length = std::min(text.find_first_of(separators), text.size());
        parts.push_back(text.substr(0, length));
        text.remove_prefix(length);
    }
}

/// What became of opening one store.
struct attempt {
    std::unique_ptr<engine> store;
    failure why;
    /// It has no result yet.
    bool under_way{};
};

/// How long members that do not answer are waited for if a majority is there.
constexpr milliseconds opening_patience{500};

/// What went wrong, without what is said around it: whose store it is, and the kind of error.
[[nodiscard]] std::string reason_in(const std::system_error& error, const std::string& shown) {
    std::string text = error.what();
    const auto ending = ": " + error.code().message();
    if (text.ends_with(ending)) {
        text.resize(text.size() - ending.size());
    }
    const auto introduction = shown + ": ";
    const auto found = text.find(introduction);
    return found == std::string::npos ? text : text.substr(found + introduction.size());
}

[[nodiscard]] attempt try_open(const std::string& address, const client_identity& identity) {
    attempt result;
    try {
        result.store = open(address, identity);
    } catch (const std::system_error& error) {
        const bool ours = error.code().category() == error_category();
        result.why = {ours ? static_cast<errc>(error.code().value()) : errc::store_error,
                      reason_in(error, summarise_address(address).shown)};
    } catch (const std::exception& error) {
        result.why = {errc::store_error, error.what()};
    }
    return result;
}

/// Stores that are being opened, all at the same time, each by a thread of its own. A thread ends by
/// itself when its store answers or the attempt times out; nobody has to wait for it.
///
/// Thread safety: all functions may be called from any thread.
class openings : public std::enable_shared_from_this<openings> {
public:
    openings(std::vector<std::string> stores, client_identity identity)
        : stores_{std::move(stores)}, identity_{std::move(identity)}, results_(stores_.size()) {}

    void begin(std::size_t index) {
        quiet_thread([self = shared_from_this(), index] {
            auto result = try_open(self->stores_[index], self->identity_);
            {
                const std::lock_guard lock{self->guard_};
                if (!self->abandoned_) {
                    self->results_[index] = std::move(result);
                }
            }
            self->changed_.notify_all();
        }).detach();
    }

    /// Until all are open or have failed. Once a majority is open the others are given until `by`:
    /// those that have not answered then are as good as away.
    [[nodiscard]] std::vector<attempt> first_results(clock::time_point by) {
        std::unique_lock lock{guard_};
        const auto over = [&](bool enough) {
            std::size_t ended = 0;
            std::size_t open = 0;
            for (const auto& each : results_) {
                ended += each ? 1 : 0;
                open += each && each->store ? 1 : 0;
            }
            return ended == results_.size() || (enough && open >= core::majority_of(results_.size()));
        };
        if (!changed_.wait_until(lock, by, [&] { return over(false); })) {
            changed_.wait(lock, [&] { return over(true); });
        }
        std::vector<attempt> all;
        for (auto& each : results_) {
            all.push_back(
                each ? *std::exchange(each, std::nullopt)
                     : attempt{nullptr, {errc::store_unavailable, "has not answered yet"}, true});
        }
        return all;
    }

    /// The next that has ended of those that are looked for, or nothing when it is time to stop or
    /// `until` has come.
    [[nodiscard]] std::optional<std::pair<std::size_t, attempt>> next(const std::stop_token& stop,
                                                                      clock::time_point until) {
        std::unique_lock lock{guard_};
        const auto ended = [this] {
            return std::find_if(results_.begin(), results_.end(),
                                [](const auto& each) { return each.has_value(); });
        };
        changed_.wait_until(lock, stop, until, [&] { return ended() != results_.end(); });
        const auto found = ended();
        if (stop.stop_requested() || found == results_.end()) {
            return std::nullopt;
        }
        return std::pair{static_cast<std::size_t>(found - results_.begin()),
                         *std::exchange(*found, std::nullopt)};
    }

    /// What is opened from now on is closed again.
    void abandon() {
        std::vector<std::optional<attempt>> dropped;
        const std::lock_guard lock{guard_};
        abandoned_ = true;
        dropped.swap(results_);
        results_.resize(dropped.size());
    }

private:
    const std::vector<std::string> stores_;
    const client_identity identity_;
    std::mutex guard_;
    std::condition_variable_any changed_;
    bool abandoned_{};
    std::vector<std::optional<attempt>> results_;
};

/// Whether `store` may vote in the place of `wanted`.
[[nodiscard]] failure check_promises(engine& store, late_member& wanted) {
    const auto& there = store.promises();
    const auto& promised = wanted.promises();
    const auto lacks = [](const auto* offered, const auto* expected) {
        return offered == nullptr && expected != nullptr;
    };
    const auto offered = store.offers();
    const auto expected = wanted.offers();
    const bool fits =
        there.reach >= promised.reach && there.tokens >= promised.tokens &&
        (there.shared || !promised.shared) && (there.replicas || !promised.replicas) &&
        there.minimum_ttl <= promised.minimum_ttl && !lacks(offered.watching, expected.watching) &&
        !lacks(offered.operators, expected.operators) && !lacks(offered.votes, expected.votes);
    return fits ? failure{}
                : failure{errc::bad_configuration, "this store promises less than the other members"};
}

/// A quorum of which some stores were not there, with the thread that goes on trying.
class incomplete_quorum final : public engine {
public:
    /// Where a store that is missing is to be put. `under_way`: it is being opened.
    struct missing {
        std::size_t index;
        late_member* place;
        bool under_way;
    };

    incomplete_quorum(std::unique_ptr<engine> inner, std::vector<missing> missing_ones,
                      std::vector<engine*> present, std::shared_ptr<openings> stores)
        : inner_{std::move(inner)},
          missing_{std::move(missing_ones)},
          present_{std::move(present)},
          stores_{std::move(stores)},
          opener_{quiet_thread([this](const std::stop_token& stop) { go_on(stop); })} {}
    incomplete_quorum(const incomplete_quorum&) = delete;
    incomplete_quorum& operator=(const incomplete_quorum&) = delete;
    ~incomplete_quorum() override { stores_->abandon(); }

    [[nodiscard]] const guarantees& promises() const noexcept override { return inner_->promises(); }
    [[nodiscard]] abilities offers() noexcept override { return inner_->offers(); }
    [[nodiscard]] const std::string& address() const noexcept override { return inner_->address(); }
    [[nodiscard]] std::string store_identity() const override { return inner_->store_identity(); }
    void attach(client_callbacks callbacks) override { inner_->attach(std::move(callbacks)); }
    void acquire(acquire_request request, call how, completion<acquire_reply> done) override {
        inner_->acquire(std::move(request), how, std::move(done));
    }
    void renew(std::vector<renew_request> batch, call how,
               completion<std::vector<renew_reply>> done) override {
        inner_->renew(std::move(batch), how, std::move(done));
    }
    void release(release_request request, call how, completion<release_reply> done) override {
        inner_->release(std::move(request), how, std::move(done));
    }

private:
    void go_on(const std::stop_token& stop) {
        constexpr milliseconds first_pause{100};
        constexpr milliseconds longest_pause{5000};
        auto pause = first_pause;
        auto again_at = clock::now() + pause;
        while (!missing_.empty() && !stop.stop_requested()) {
            if (auto ended = stores_->next(stop, again_at)) {
                settle(ended->first, std::move(ended->second));
                continue;
            }
            for (auto& each : missing_) {
                if (!stop.stop_requested() && !each.under_way) {
                    each.under_way = begins(each.index);
                }
            }
            pause = std::min(2 * pause, longest_pause);
            again_at = clock::now() + pause;
        }
    }

    /// False when there is no thread to be had at the moment.
    [[nodiscard]] bool begins(std::size_t index) {
        try {
            stores_->begin(index);
            return true;
        } catch (const std::system_error&) {
            return false;
        }
    }

    void settle(std::size_t index, attempt result) {
        const auto one = std::find_if(missing_.begin(), missing_.end(),
                                      [&](const missing& each) { return each.index == index; });
        if (result.store) {
            result.why = check_promises(*result.store, *one->place);
        }
        if (result.store && !result.why) {
            auto known = present_;
            known.push_back(result.store.get());
            result.why = check_distinct(known);
        }
        if (result.why) {
            one->under_way = false;
            one->place->explain(std::move(result.why));
            return;
        }
        present_.push_back(result.store.get());
        one->place->adopt(std::move(result.store));
        missing_.erase(one);
    }

    std::unique_ptr<engine> inner_;
    std::vector<missing> missing_;
    std::vector<engine*> present_;
    std::shared_ptr<openings> stores_;
    std::jthread opener_;
};

/// A quorum needs a majority to begin with, and addresses and credentials that are right: a member that
/// will never vote is not one that is away.
void check_attempts(const std::vector<attempt>& attempts, const std::vector<std::string>& names) {
    std::vector<failure> failures;
    std::size_t open = 0;
    for (const auto& each : attempts) {
        failures.push_back(each.why);
        open += each.store ? 1 : 0;
        const bool ours_to_mend = each.why.code == errc::bad_configuration ||
                                  each.why.code == errc::invalid_argument ||
                                  each.why.code == errc::unauthorised;
        if (ours_to_mend) {
            each.why.raise("cannot use the quorum: " + names[failures.size() - 1]);
        }
    }
    if (open < core::majority_of(attempts.size())) {
        core::combined_failure(names, failures).raise("cannot use the quorum");
    }
}

struct member_summaries {
    std::vector<std::string> names;
    std::vector<std::string> identities;
    std::vector<std::string> prefixes;
};

/// The same whether or not they can be opened.
[[nodiscard]] member_summaries summarise_members(const quorum& stores) {
    member_summaries all;
    for (const auto& each : stores.stores) {
        auto summary = summarise_address(each);
        all.names.push_back(std::move(summary.shown));
        all.identities.push_back(std::move(summary.identity));
        std::move(summary.prefixes.begin(), summary.prefixes.end(), std::back_inserter(all.prefixes));
    }
    return all;
}

[[nodiscard]] quorum_options options_of(const quorum& stores) {
    return {stores.member_timeout, stores.drift, stores.restart_grace, {}};
}

void check_stores(const quorum& stores) {
    if (stores.stores.empty()) {
        refuse("name at least one store: quorum:redis://a redis://b redis://c");
    }
    std::set<std::string> distinct;
    for (const auto& each : stores.stores) {
        const auto place = "store " + std::to_string(distinct.size() + 1) + " of the quorum";
        if (each.find_first_of(" \t\n\r") != std::string::npos) {
            refuse(place + " has white space in its address");
        }
        if (each.rfind("quorum:", 0) == 0) {
            refuse("a quorum cannot be a member of another");
        }
        const auto summary = summarise_address(each);
        if (!distinct.insert(summary.identity).second) {
            refuse(summary.shown + " is named twice; it has one vote");
        }
    }
    // No moment of a clock that counts nanoseconds is further away.
    constexpr std::chrono::hours longest{24 * 365 * 100};
    const auto from = [longest](milliseconds shortest, milliseconds given) {
        return given >= shortest && given <= longest;
    };
    if (!from(milliseconds{0}, stores.restart_grace) ||
        !from(milliseconds{1}, stores.member_timeout.value_or(milliseconds{1})) ||
        !from(milliseconds{0}, stores.drift.value_or(milliseconds{0}))) {
        refuse(
            "member_timeout must be positive, drift and restart_grace not negative, and none longer "
            "than a hundred years");
    }
}

}  // namespace

quorum parse_quorum(std::string_view rest) {
    quorum result;
    for (const auto part : split(rest, " \t\r\n")) {
        if (part.front() != '?') {
            result.stores.emplace_back(part);
            continue;
        }
        for (const auto option : split(part.substr(1), "&")) {
            parse_option(option, result);
        }
    }
    return result;
}

}  // namespace holdfast::engines::quorums

namespace holdfast::engines {

address_summary summarise_quorum(std::string_view rest) {
    const auto stores = quorums::parse_quorum(rest);
    auto members = quorums::summarise_members(stores);
    return {quorums::identity_of(std::move(members.identities)),
            quorums::text_of(quorums::options_of(stores), members.names), std::move(members.prefixes)};
}

std::unique_ptr<engine> v0::open_quorum(const quorum& stores, const client_identity& identity) {
    using namespace quorums;
    check_stores(stores);
    const auto opening = std::make_shared<openings>(stores.stores, identity);
    for (std::size_t index = 0; index < stores.stores.size(); ++index) {
        opening->begin(index);
    }
    const auto patience = stores.member_timeout.value_or(opening_patience);
    auto attempts = opening->first_results(clock::now() + patience);
    auto [names, identities, prefixes] = summarise_members(stores);
    for (std::size_t index = 0; index < attempts.size(); ++index) {
        if (attempts[index].store) {
            names[index] = attempts[index].store->address();
        }
    }
    check_attempts(attempts, names);
    const auto any = std::find_if(attempts.begin(), attempts.end(),
                                  [](const attempt& one) { return one.store != nullptr; });
    auto& like = *any->store;
    std::vector<std::unique_ptr<engine>> members;
    std::vector<engine*> present;
    std::vector<incomplete_quorum::missing> missing;
    for (std::size_t index = 0; index < attempts.size(); ++index) {
        if (attempts[index].store) {
            present.push_back(attempts[index].store.get());
            members.push_back(std::move(attempts[index].store));
            continue;
        }
        auto late =
            std::make_unique<late_member>(names[index], identities[index], like, attempts[index].why);
        missing.push_back({index, late.get(), attempts[index].under_way});
        members.push_back(std::move(late));
    }
    const auto options = options_of(stores);
    auto whole = std::make_unique<quorum_engine>(std::move(members), options, text_of(options, names),
                                                 identity_of(std::move(identities)));
    whole->repeat_releases();
    if (missing.empty()) {
        return whole;
    }
    return std::make_unique<incomplete_quorum>(std::move(whole), std::move(missing), std::move(present),
                                               opening);
}

}  // namespace holdfast::engines
