#include <redis/catalogue.hpp>

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

void ask(const catalogue& from, std::uint16_t slot, words command, call how,
         std::function<void(connection::result)> done) {
    from.servers.send(
        slot, router::lane::common,
        [command = std::move(command)](std::string& out, const server_facts&) {
            append_command(out, std::vector<std::string_view>{command.begin(), command.end()});
            return connection::expected{1};
        },
        how, std::move(done));
}

[[nodiscard]] std::optional<holder_card> read_card(const value& reply) {
    if (reply.type != value::kind::array || reply.items.empty()) {
        return std::nullopt;
    }
    holder_card card;
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
        }
    }
    return card;
}

/// Fetches the cards of all holders of `locks`, then calls `done`.
void add_cards(const std::shared_ptr<const catalogue>& from, std::vector<lock_info>& locks, call how,
               std::function<void()> done) {
    struct gathering {
        std::mutex guard;
        std::map<std::string, std::optional<holder_card>> cards;
        std::atomic<std::size_t> missing{1};
        std::vector<lock_info>* locks{};
        std::function<void()> done;

        void arrived() {
            if (missing.fetch_sub(1) != 1) {
                return;
            }
            for (auto& lock : *locks) {
                for (auto& holder : lock.holders) {
                    holder.card = cards[holder.owner.client_text()];
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
        ask(*from, slot_in(*from, key), {"HGETALL", key}, how,
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

/// PUBSUB NUMSUB answers channel, count, channel, count, …
[[nodiscard]] std::uint32_t subscribers(const value& reply) {
    std::int64_t sum = 0;
    for (std::size_t index = 1; index < reply.items.size(); index += 2) {
        sum += reply.items[index].integer;
    }
    return static_cast<std::uint32_t>(sum);
}

/// What is known without cards, and whether the name has a key of its own.
void describe(const catalogue& from, const std::string& name, call how,
              std::function<void(inspect_reply, bool there)> done) {
    const auto key = from.words.key_of(name);
    auto script = inspect_call(key, from.words);
    script.then.add("PUBSUB", from.words.publish == "spublish" ? "SHARDNUMSUB" : "NUMSUB",
                    channel_of(lock_kind::mutex, key), channel_of(lock_kind::shared_mutex, key),
                    channel_of(lock_kind::semaphore, key));
    from.run(std::move(script), slot_in(from, key), how,
             [name, done = std::move(done)](connection::result result) {
                 inspect_reply reply;
                 if (result.error) {
                     reply.error = std::move(result.error);
                     done(std::move(reply), false);
                     return;
                 }
                 const auto& seen = result.replies[0].items;
                 const bool there = !seen.empty() && seen.front().text != "none";
                 reply = inspect_answer(result.replies[0], name);
                 if (!reply.info.waiters && !result.replies[1].is_error()) {
                     reply.info.waiters = subscribers(result.replies[1]);
                 }
                 done(std::move(reply), there);
             });
}

/// Goes through the keys of all masters, one page after the other, then describes what it found, many
/// at a time.
class listing : public std::enable_shared_from_this<listing> {
public:
    listing(std::shared_ptr<const catalogue> from, list_request request, call how,
            completion<list_reply> done)
        : from_{std::move(from)},
          request_{std::move(request)},
          how_{how},
          done_{std::move(done)},
          prefix_{from_->words.key_of(request_.prefix)} {
        for (const auto slot : from_->servers.a_slot_of_each_master()) {
            left_.push_back({slot, kind::permits});
            left_.push_back({slot, kind::locks});
        }
    }

    void start() { scan("0"); }

private:
    static constexpr std::string_view keys_per_page = "1000";
    static constexpr std::string_view permits_mark = ":timeout";
    /// Requests under way at a time: few enough to keep nobody else waiting.
    static constexpr std::size_t described_together = 128;

    /// Names that are described together, in their order.
    struct batch {
        explicit batch(std::size_t count) : replies(count), missing{count} {}
        std::vector<inspect_reply> replies;
        std::atomic<std::size_t> missing;
    };

    /// Locks and what we know of them are hashes; of a semaphore that only others use there is but the
    /// sorted set of its permits.
    enum class kind : std::uint8_t { locks, permits };
    struct pass {
        std::uint16_t slot{};
        kind what{};
    };

    void scan(const std::string& cursor) {
        std::vector<std::string> command{"SCAN", cursor, "COUNT", std::string{keys_per_page}, "TYPE"};
        if (left_.back().what == kind::locks) {
            command.emplace_back("hash");
        } else {
            command.insert(command.end(), {"zset", "MATCH", "*" + std::string{permits_mark}});
        }
        const auto how = how_;
        how_.from = caller::must_not_block;  // what follows runs inside completions, on any thread
        ask(*from_, left_.back().slot, std::move(command), how,
            [self = shared_from_this()](connection::result result) {
                self->scanned(std::move(result));
            });
    }

    void scanned(connection::result result) {
        if (result.error) {
            fail(std::move(result.error));
            return;
        }
        const auto& page = result.replies.front();
        if (page.is_error()) {
            fail(meaning_of(page));
            return;
        }
        if (page.items.size() != 2) {
            fail(senseless_answer("SCAN"));
            return;
        }
        for (const auto& key : page.items[1].items) {
            if (left_.back().what == kind::locks) {
                consider(key.text);
            } else if (key.text.ends_with(permits_mark)) {
                add_owner_of(
                    std::string_view{key.text}.substr(0, key.text.size() - permits_mark.size()));
            }
        }
        if (page.items[0].text != "0") {
            scan(page.items[0].text);
            return;
        }
        left_.pop_back();
        if (!left_.empty()) {
            scan("0");
            return;
        }
        describe_next();
    }

    /// The key of a lock, or of what we know about one.
    void consider(std::string_view key) {
        if (auto name = name_in_holds_key(key)) {
            add(*std::move(name));
        } else if (!is_reserved(key)) {
            add(std::string{key});
        }
    }

    /// A key of Redisson's beside that of a lock has the lock's name in it, or the name in braces. Both
    /// names may be in use; which of them is, their own keys tell.
    void add_owner_of(std::string_view named) {
        if (named.size() > 2 && named.starts_with('{') && named.ends_with('}')) {
            add(std::string{named.substr(1, named.size() - 2)});
        }
        add(std::string{named});
    }

    /// A name, still with the prefix of ours.
    void add(std::string name) {
        if (!name.starts_with(prefix_)) {
            return;
        }
        name = name.substr(from_->words.prefix.size());
        if (name > request_.from || request_.from.empty()) {
            names_.insert(std::move(name));
        }
    }

    void describe_next() {
        if (names_.empty() || found_.size() == request_.limit) {
            add_cards(from_, found_, how_, [self = shared_from_this()] { self->finish(); });
            return;
        }
        // No more than may still be found, so that none is described in vain or left out.
        const auto count =
            std::min({names_.size(), request_.limit - found_.size(), described_together});
        const auto all = std::make_shared<batch>(count);
        for (std::size_t place = 0; place < count; ++place) {
            const auto name = std::move(names_.extract(names_.begin()).value());
            describe(*from_, name, how_,
                     [self = shared_from_this(), all, place](inspect_reply reply, bool there) {
                         if (!there) {
                             reply.info.holders.clear();  // what lies beside it is another name's
                         }
                         all->replies[place] = std::move(reply);
                         if (all->missing.fetch_sub(1) == 1) {
                             self->described(*all);
                         }
                     });
        }
    }

    void described(batch& all) {
        for (auto& reply : all.replies) {
            if (reply.error) {
                fail(std::move(reply.error));
                return;
            }
            if (!reply.info.holders.empty()) {
                found_.push_back(std::move(reply.info));
            }
        }
        describe_next();
    }

    void finish() {
        list_reply reply;
        if (!names_.empty() && !found_.empty()) {
            reply.next = found_.back().name;
        }
        reply.locks = std::move(found_);
        done_(std::move(reply));
    }

    void fail(failure why) {
        list_reply reply;
        reply.error = std::move(why);
        done_(std::move(reply));
    }

    std::shared_ptr<const catalogue> from_;
    list_request request_;
    call how_;
    completion<list_reply> done_;
    std::string prefix_;
    std::vector<pass> left_;
    std::set<std::string> names_;
    std::vector<lock_info> found_;
};

}  // namespace

void inspect_name(const std::shared_ptr<const catalogue>& from, const std::string& name, call how,
                  completion<inspect_reply> done) {
    const call then{how.deadline, caller::must_not_block};
    describe(*from, name, how, [from, then, done = std::move(done)](inspect_reply reply, bool) {
        if (reply.error || reply.info.holders.empty()) {
            done(std::move(reply));
            return;
        }
        const auto locks = std::make_shared<std::vector<lock_info>>(std::vector{std::move(reply.info)});
        add_cards(from, *locks, then, [locks, done] {
            inspect_reply complete;
            complete.info = std::move(locks->front());
            done(std::move(complete));
        });
    });
}

void list_names(const std::shared_ptr<const catalogue>& from, list_request request, call how,
                completion<list_reply> done) {
    std::make_shared<listing>(from, std::move(request), how, std::move(done))->start();
}

}  // namespace holdfast::engines::redis
