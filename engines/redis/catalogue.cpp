#include <redis/catalogue.hpp>

#include <common/host_process.hpp>
#include <redis/errors.hpp>
#include <redis/layout/keys.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace holdfast::engines::redis {

namespace {

using words = std::vector<std::string>;

[[nodiscard]] std::uint16_t slot_in(const catalogue& from, const std::string& key) {
    return from.words.clustered ? slot_of(key) : std::uint16_t{0};
}

void ask(const catalogue& from, std::uint16_t slot, words command, call limits,
         std::function<void(connection::result)> done) {
    from.servers.send(
        slot, router::lane::common,
        [command = std::move(command)](std::string& out, const server_facts&) {
            append_command(out, std::vector<std::string_view>{command.begin(), command.end()});
            return connection::expected{1};
        },
        limits, std::move(done));
}

/// A holder's card, and whether its process is there as far as we can see from this host.
struct known_holder {
    std::optional<holder_card> card;
    liveness process{liveness::unknown};
};

[[nodiscard]] known_holder read_card(const value& reply) {
    if (reply.type != value::kind::array || reply.items.empty()) {
        return {};
    }
    holder_card card;
    std::string_view mark;
    for (std::size_t index = 0; index + 1 < reply.items.size(); index += 2) {
        const auto& field = reply.items[index].text;
        const auto& text = reply.items[index + 1].text;
        if (field == "host") {
            card.host = text;
        } else if (field == "pid") {
            std::from_chars(text.data(), text.data() + text.size(), card.pid);
        } else if (field == "program") {
            card.program = text;
        } else if (field == "label") {
            card.label = text;
        } else if (field == "process") {
            mark = text;
        }
    }
    const auto there = liveness_of(card.pid, mark);
    return {std::move(card), there};
}

/// Fetches the cards of all holders of `locks`, then calls `done`.
void add_cards(const std::shared_ptr<const catalogue>& from, std::vector<lock_info>& locks, call limits,
               std::function<void()> done) {
    struct gathering {
        std::mutex guard;
        std::map<std::string, known_holder> cards;
        std::atomic<std::size_t> missing{1};
        std::vector<lock_info>* locks{};
        std::function<void()> done;

        void arrived() {
            if (missing.fetch_sub(1) != 1) {
                return;
            }
            for (auto& lock : *locks) {
                for (auto& holder : lock.holders) {
                    const auto& known = cards[holder.owner.client_text()];
                    holder.card = known.card;
                    holder.process = known.process;
                }
            }
            done();
        }
    };
    const auto all = std::make_shared<gathering>();
    all->locks = &locks;
    all->done = std::move(done);
    std::set<std::string> clients;
    for (const auto& lock : locks) {
        for (const auto& holder : lock.holders) {
            clients.insert(holder.owner.client_text());
        }
    }
    for (const auto& client : clients) {
        all->missing.fetch_add(1);
        const auto key = card_key(client);
        ask(*from, slot_in(*from, key), {"HGETALL", key}, limits,
            [all, client](const connection::result& result) {
                if (!result.error) {  // without a card the holder is shown all the same
                    const std::lock_guard lock{all->guard};
                    all->cards[client] = read_card(result.replies.front());
                }
                all->arrived();
            });
    }
    all->arrived();
}

/// PUBSUB NUMSUB answers channel, count, channel, count, … Those who wait for both kinds of lock listen
/// to the first two channels, and count once.
[[nodiscard]] std::uint32_t subscribers(const value& reply) {
    const auto of = [&](std::size_t channel) {
        const auto index = 2 * channel + 1;
        return index < reply.items.size() ? reply.items[index].integer : std::int64_t{0};
    };
    return static_cast<std::uint32_t>(std::max(of(0), of(1)) + of(2));
}

/// What there is of a name.
struct traces {
    /// Its own key, and that one is a hash: a lock, not a semaphore.
    bool key{};
    bool hash{};
    /// What we know of holders.
    bool holds{};
    /// This user may not use one of its keys.
    bool forbidden{};
    /// This user may not count who waits.
    bool uncounted{};
};

enum class waiter_count : std::uint8_t { asked, left_out };

[[nodiscard]] traces traces_in(const value& answer) {
    if (refuses_keys(answer)) {
        return {.forbidden = true};
    }
    constexpr std::size_t of_holds = 3;  // see the script
    if (answer.items.size() <= of_holds) {
        return {};
    }
    const auto& type = answer.items.front().text;
    return {type != "none", type == "hash", !answer.items[of_holds].items.empty(), false, false};
}

/// What is known without cards.
void describe(const catalogue& from, const std::string& name, waiter_count waiters, call limits,
              std::function<void(inspect_reply, traces)> done) {
    const auto key = from.words.key_of(name);
    auto script = inspect_call(key, from.words);
    if (waiters == waiter_count::asked) {
        script.then.add("PUBSUB", from.words.publish == "spublish" ? "SHARDNUMSUB" : "NUMSUB",
                        channel_of(lock_kind::mutex, key), channel_of(lock_kind::shared_mutex, key),
                        channel_of(lock_kind::semaphore, key));
    }
    from.run(std::move(script), slot_in(from, key), limits,
             [name, done = std::move(done)](connection::result result) {
                 inspect_reply reply;
                 reply.info.name = name;
                 if (result.error) {
                     reply.error = std::move(result.error);
                     done(std::move(reply), {});
                     return;
                 }
                 auto there = traces_in(result.replies[0]);
                 reply = inspect_answer(result.replies[0], name);
                 const bool asked = result.replies.size() > 1;
                 there.uncounted = asked && result.replies[1].is_error();
                 if (!reply.info.waiters && asked && !there.uncounted) {
                     reply.info.waiters = subscribers(result.replies[1]);
                 }
                 done(std::move(reply), there);
             });
}

/// Where a list goes on: at which master (by a slot of it), among which keys, and after which name of
/// those that the server names at this cursor.
struct list_position {
    /// Locks and what we know of them are hashes; of a semaphore that only others use there is but the
    /// sorted set of its permits.
    enum class pass : std::uint8_t { locks, permits };

    std::uint16_t slot{};
    pass among{};
    std::string cursor{"0"};
    std::string after{};

    /// "<slot>.<pass>.<cursor>.<after>"
    [[nodiscard]] std::string text() const {
        return std::to_string(slot) + (among == pass::locks ? ".h." : ".z.") + cursor + "." + after;
    }

    [[nodiscard]] static std::optional<list_position> parse(std::string_view text) {
        list_position place;
        const char* const end = text.data() + text.size();
        const auto [rest, problem] = std::from_chars(text.data(), end, place.slot);
        text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
        place.among = text.starts_with(".z.") ? pass::permits : pass::locks;
        if (problem != std::errc{} || !(text.starts_with(".h.") || text.starts_with(".z."))) {
            return std::nullopt;
        }
        text.remove_prefix(3);
        const auto dot = text.find('.');
        place.cursor = text.substr(0, dot);
        if (dot == std::string_view::npos || place.cursor.empty() ||
            place.cursor.find_first_not_of("0123456789") != std::string::npos) {
            return std::nullopt;
        }
        place.after = text.substr(dot + 1);
        return place;
    }
};

/// One page of a list. Goes through the keys of one master after the other, a few at a time, and
/// describes what may be a lock. It ends when it is full, or when half of its time is over: what is
/// left is for the next page, so that a list comes to its end however many keys there are.
class listing : public std::enable_shared_from_this<listing> {
public:
    listing(std::shared_ptr<const catalogue> from, list_request request, call limits,
            completion<list_reply> done)
        : from_{std::move(from)},
          request_{std::move(request)},
          limits_{limits},
          done_{std::move(done)},
          prefix_{from_->words.key_of(request_.prefix)},
          masters_{from_->servers.a_slot_of_each_master()},
          full_at_{clock::now() + (limits.deadline - clock::now()) / 2} {
        std::sort(masters_.begin(), masters_.end());
    }

    void start() {
        if (!request_.from.empty()) {
            const auto parsed = list_position::parse(request_.from);
            if (!parsed) {
                fail({errc::invalid_argument, "this is not where a list goes on"});
                return;
            }
            place_ = *parsed;
        }
        const auto wanted = place_.slot;
        master_ = static_cast<std::size_t>(std::lower_bound(masters_.begin(), masters_.end(), wanted) -
                                           masters_.begin());
        // If the slots have been shared out anew meanwhile, the next master begins at its beginning.
        if (master_ < masters_.size() && masters_[master_] != wanted) {
            begin_master();
        }
        scan();
    }

private:
    using pass = list_position::pass;

    /// So few that the server is at it for a fraction of a millisecond.
    static constexpr std::string_view keys_at_a_time = "250";
    static constexpr std::string_view permits_mark = ":timeout";
    /// Requests under way at a time: few enough to keep nobody else waiting.
    static constexpr std::size_t described_together = 128;

    /// The keys that led to a name. Several do, perhaps on different pages, and one of them counts.
    struct sources {
        bool key{};
        bool holds{};
        bool permits{};

        [[nodiscard]] bool count(const traces& there) const {
            const bool semaphore = there.key && !there.hash;
            return (key && there.hash) || (semaphore && (there.holds ? holds : permits));
        }
    };

    /// Names that are described together, in their order.
    struct batch {
        explicit batch(std::size_t count) : replies(count), in_use(count), missing{count} {}
        std::vector<inspect_reply> replies;
        /// There are holders, as far as the keys tell.
        std::vector<char> in_use;
        std::atomic<bool> uncounted{};
        std::atomic<std::size_t> missing;
    };

    [[nodiscard]] bool full() const {
        return found_.size() == request_.limit || clock::now() >= full_at_;
    }

    /// A server that does not answer leaves time for the others.
    [[nodiscard]] call next_call() {
        auto limits = limits_;
        limits_.from = caller::must_not_block;  // what follows runs inside completions, on any thread
        if (masters_.size() > 1) {
            const auto now = clock::now();
            limits.deadline = std::min(limits.deadline, now + (limits.deadline - now) / 2);
        }
        return limits;
    }

    void begin_master() {
        together_ = 1;
        place_ = {};
        if (master_ < masters_.size()) {
            place_.slot = masters_[master_];
        }
    }

    void scan() {
        if (master_ == masters_.size()) {
            if (const auto slots = from_->servers.slots_of_nobody(); slots > 0) {
                reasons_.insert("no server is responsible for " + std::to_string(slots) +
                                " of the 16384 slots");
            }
            if (!reasons_.empty() && !answered_ && request_.from.empty()) {
                fail(missing());
                return;
            }
            finish({});
            return;
        }
        std::vector<std::string> command{"SCAN", place_.cursor, "COUNT", std::string{keys_at_a_time},
                                         "TYPE"};
        if (place_.among == pass::locks) {
            command.emplace_back("hash");
        } else {
            command.insert(command.end(), {"zset", "MATCH", "*" + std::string{permits_mark}});
        }
        ask(*from_, place_.slot, std::move(command), next_call(),
            [self = shared_from_this()](connection::result result) {
                self->scanned(std::move(result));
            });
    }

    void scanned(connection::result result) {
        auto why = std::move(result.error);
        if (!why && result.replies.front().is_error()) {
            why = meaning_of(result.replies.front());
        } else if (!why && result.replies.front().items.size() != 2) {
            why = senseless_answer("SCAN");
        }
        if (why && leaves_out(why)) {
            ++master_;
            begin_master();
            go_on();
            return;
        }
        if (why) {
            fail(std::move(why));
            return;
        }
        answered_ = true;
        const auto& page = result.replies.front();
        next_cursor_ = page.items[0].text;
        for (const auto& key : page.items[1].items) {
            if (place_.among == pass::locks) {
                consider(key.text);
            } else if (key.text.ends_with(permits_mark)) {
                add_owner_of(
                    std::string_view{key.text}.substr(0, key.text.size() - permits_mark.size()));
            }
        }
        describe_next();
    }

    /// Whether the others can be listed without what a server did not answer. The reply says what is
    /// missing.
    [[nodiscard]] bool leaves_out(const failure& why) {
        const bool silent = why.code == errc::store_unavailable || why.code == errc::outcome_unknown;
        if (masters_.size() < 2 || !silent) {
            return false;
        }
        reasons_.insert(why.detail);
        return true;
    }

    /// Why locks are left out, and what is known of them. Nothing when none is. Of a cluster that is
    /// down the servers that live name their keys, but let nobody read them.
    [[nodiscard]] failure missing() const {
        if (reasons_.empty()) {
            return {};
        }
        failure why{errc::store_unavailable, "some locks could not be looked at: "};
        for (const auto& each : reasons_) {
            why.detail += (&each == &*reasons_.begin() ? "" : "; ") + each;
        }
        constexpr std::size_t most_named = 20;
        std::size_t named = 0;
        for (const auto& each : unread_) {
            why.detail += (named == 0 ? "; among them: \"" : ", \"") + each + "\"";
            if (++named == most_named && unread_.size() > most_named) {
                why.detail += " and " + std::to_string(unread_.size() - most_named) + " more";
                break;
            }
        }
        return why;
    }

    /// The key of a lock, or of what we know about one.
    void consider(std::string_view key) {
        if (auto name = name_in_holds_key(key)) {
            add(*std::move(name), &sources::holds);
        } else if (!is_reserved(key)) {
            add(std::string{key}, &sources::key);
        }
    }

    /// A key of Redisson's beside that of a lock has the lock's name in it, or the name in braces. Both
    /// names may be in use; which of them is, their own keys tell.
    void add_owner_of(std::string_view named) {
        if (named.size() > 2 && named.starts_with('{') && named.ends_with('}')) {
            add(std::string{named.substr(1, named.size() - 2)}, &sources::permits);
        }
        add(std::string{named}, &sources::permits);
    }

    /// A name, still with the prefix of ours.
    void add(std::string name, bool sources::*source) {
        if (!name.starts_with(prefix_)) {
            return;
        }
        name = name.substr(from_->words.prefix.size());
        if (place_.after.empty() || name > place_.after) {
            names_[std::move(name)].*source = true;
        }
    }

    void describe_next() {
        if (names_.empty()) {
            next_keys();
            go_on();
            return;
        }
        // No more than may still be found, so that none is described in vain or left out.
        const auto count = std::min({names_.size(), request_.limit - found_.size(), together_});
        const auto all = std::make_shared<batch>(count);
        const auto limits = next_call();
        for (std::size_t index = 0; index < count; ++index) {
            auto next = names_.extract(names_.begin());
            place_.after = next.key();
            all->in_use[index] = next.mapped().holds;
            describe(*from_, place_.after, waiters_, limits,
                     [self = shared_from_this(), all, index, from = next.mapped(), limits](
                         inspect_reply reply, const traces& there) {
                         if (!from.count(there)) {
                             reply.info.holders.clear();
                         }
                         all->replies[index] = std::move(reply);
                         if (there.uncounted) {
                             all->uncounted = true;
                         }
                         if (there.forbidden) {
                             self->look_whose(all, index, limits.deadline);
                         } else {
                             self->arrived(*all);
                         }
                     });
        }
    }

    /// A name of which the user may not even use the key itself is not for this user to see. Without
    /// the others the user lacks a permission, and has to be told.
    void look_whose(const std::shared_ptr<batch>& all, std::size_t index, clock::time_point until) {
        const auto key = from_->words.key_of(all->replies[index].info.name);
        ask(*from_, slot_in(*from_, key), {"TYPE", key}, {until, caller::must_not_block},
            [self = shared_from_this(), all, index](const connection::result& result) {
                if (!result.error && refuses_keys(result.replies.front())) {
                    all->replies[index].error = {};
                }
                self->arrived(*all);
            });
    }

    void arrived(batch& all) {
        if (all.missing.fetch_sub(1) == 1) {
            described(all);
        }
    }

    void described(batch& all) {
        together_ = described_together;
        if (all.uncounted) {
            waiters_ = waiter_count::left_out;  // it would be refused for each of them
        }
        for (std::size_t index = 0; index < all.replies.size(); ++index) {
            auto& reply = all.replies[index];
            // Somebody else's key is no lock.
            const bool foreign = reply.error.code == errc::wrong_kind;
            if (reply.error && !foreign && !leaves_out(reply.error)) {
                fail(std::move(reply.error));
                return;
            }
            if (!reply.error && !reply.info.holders.empty()) {
                found_.push_back(std::move(reply.info));
            } else if (reply.error && !foreign && all.in_use[index] != 0) {
                unread_.insert(reply.info.name);
            }
        }
        if (names_.empty() || !full()) {
            describe_next();
            return;
        }
        finish(place_.text());
    }

    void next_keys() {
        place_.cursor = next_cursor_;
        place_.after.clear();
        if (place_.cursor != "0") {
            return;
        }
        if (place_.among == pass::locks) {
            place_.among = pass::permits;
            return;
        }
        ++master_;
        begin_master();
    }

    void go_on() {
        if (full() && master_ < masters_.size()) {
            finish(place_.text());
        } else {
            scan();
        }
    }

    void finish(std::string next) {
        std::sort(found_.begin(), found_.end(),
                  [](const lock_info& one, const lock_info& other) { return one.name < other.name; });
        add_cards(from_, found_, limits_,
                  [self = shared_from_this(), next = std::move(next)]() mutable {
                      list_reply reply;
                      reply.next = std::move(next);
                      reply.locks = std::move(self->found_);
                      reply.missing = self->missing();
                      self->done_(std::move(reply));
                  });
    }

    void fail(failure why) {
        list_reply reply;
        reply.error = std::move(why);
        done_(std::move(reply));
    }

    std::shared_ptr<const catalogue> from_;
    list_request request_;
    call limits_;
    completion<list_reply> done_;
    std::string prefix_;
    std::vector<std::uint16_t> masters_;
    clock::time_point full_at_;
    std::size_t master_{};
    list_position place_;
    std::string next_cursor_;
    bool answered_{};
    /// One at first: a server that does not know the script refuses it once, not for each name.
    std::size_t together_{1};
    waiter_count waiters_{waiter_count::asked};
    std::set<std::string> reasons_;
    /// Names that are in use, but could not be looked at.
    std::set<std::string> unread_;
    /// Those of the keys at hand that are not described yet.
    std::map<std::string, sources> names_;
    std::vector<lock_info> found_;
};

}  // namespace

void inspect_name(const std::shared_ptr<const catalogue>& from, const std::string& name, call limits,
                  completion<inspect_reply> done) {
    const call then{limits.deadline, caller::must_not_block};
    describe(*from, name, waiter_count::asked, limits,
             [from, then, done = std::move(done)](inspect_reply reply, const traces&) {
                 if (reply.error || reply.info.holders.empty()) {
                     done(std::move(reply));
                     return;
                 }
                 const auto locks =
                     std::make_shared<std::vector<lock_info>>(std::vector{std::move(reply.info)});
                 add_cards(from, *locks, then, [locks, done] {
                     inspect_reply complete;
                     complete.info = std::move(locks->front());
                     done(std::move(complete));
                 });
             });
}

void list_names(const std::shared_ptr<const catalogue>& from, list_request request, call limits,
                completion<list_reply> done) {
    std::make_shared<listing>(from, std::move(request), limits, std::move(done))->start();
}

}  // namespace holdfast::engines::redis
