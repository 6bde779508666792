#include <redis/moving.hpp>

#include <records/rules.hpp>
#include <redis/errors.hpp>
#include <redis/layout/keys.hpp>
#include <redis/layout/revocation.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::engines::redis {

namespace {

using words = std::vector<std::string>;
using answered = std::function<void(const value&)>;

/// The answer to a request with one key, or why there is none.
[[nodiscard]] failure trouble_in(const connection::result& result) {
    if (result.error) {
        return result.error;
    }
    const auto& answer = result.replies.front();
    return answer.is_error() ? meaning_of(answer) : failure{};
}

/// The first number of a script's answer.
[[nodiscard]] std::int64_t verdict(const value& answer) noexcept {
    return answer.type == value::kind::integer ? answer.integer
           : answer.items.empty()              ? 0
                                               : answer.items.front().integer;
}

/// One operation on a hold, step by step. Each step names one key.
template <class Request, class Reply>
class walk : public std::enable_shared_from_this<walk<Request, Reply>> {
public:
    walk(std::shared_ptr<const catalogue> from, Request request, call limits, completion<Reply> done)
        : from_{std::move(from)},
          request_{std::move(request)},
          limits_{limits.deadline, caller::must_not_block},
          done_{std::move(done)},
          key_{from_->words.key_of(request_.name)},
          owner_{request_.owner.text()} {}
    walk(const walk&) = delete;
    walk& operator=(const walk&) = delete;
    virtual ~walk() = default;

protected:
    /// Sends a command; what comes next needs its answer.
    void ask(words command, answered next) {
        from_->servers.send(
            slot_of(key_), router::lane::common,
            [command = std::move(command)](std::string& out, const server_facts&) {
                append_command(out, std::vector<std::string_view>{command.begin(), command.end()});
                return connection::expected{1};
            },
            limits_, step(std::move(next)));
    }
    /// Likewise, and whatever the answer is, `next` comes next. It is given none if the command failed.
    void try_to(words command, std::function<void(const value*)> next) {
        from_->servers.send(
            slot_of(key_), router::lane::common,
            [command = std::move(command)](std::string& out, const server_facts&) {
                append_command(out, std::vector<std::string_view>{command.begin(), command.end()});
                return connection::expected{1};
            },
            limits_,
            [self = this->shared_from_this(),
             next = std::move(next)](const connection::result& result) {
                next(trouble_in(result) ? nullptr : &result.replies.front());
            });
    }
    void run(const script& text, const std::string& key, const words& arguments, answered next) {
        script_call call{&text};
        call.keys.add(key);
        for (const auto& argument : arguments) {
            call.arguments.add(argument);
        }
        from_->run(std::move(call), slot_of(key_), limits_, step(std::move(next)));
    }
    void finish(Reply reply) { done_(std::move(reply)); }

    [[nodiscard]] const Request& request() const noexcept { return request_; }
    [[nodiscard]] const std::string& key() const noexcept { return key_; }
    [[nodiscard]] const std::string& owner() const noexcept { return owner_; }
    [[nodiscard]] const dialect& dialect_in_use() const noexcept { return from_->words; }

private:
    [[nodiscard]] std::function<void(connection::result)> step(answered next) {
        return [self = this->shared_from_this(),
                next = std::move(next)](const connection::result& result) {
            if (auto trouble = trouble_in(result)) {
                Reply reply;
                reply.error = std::move(trouble);
                self->finish(std::move(reply));
                return;
            }
            next(result.replies.front());
        };
    }

    std::shared_ptr<const catalogue> from_;
    Request request_;
    call limits_;
    completion<Reply> done_;
    std::string key_;
    std::string owner_;
};

[[nodiscard]] std::string timeout_of(const std::string& key, const std::string& owner) {
    return reader_timeout(key, owner) + ":1";
}

class renewal final : public walk<renew_request, renew_reply> {
public:
    using walk::walk;

    void start() {
        ttl_ = std::to_string(request().ttl.count());
        if (request().mode == claim_mode::permit) {
            ask({"HGET", holds_key(key()), owner()},
                [this](const value& hold) { renew_permits(hold.text); });
            return;
        }
        words arguments{ttl_};
        if (is_read_write(request().kind)) {
            arguments.push_back(owner() + ":write");
        }
        if (!is_read_write(request().kind) || request().mode == claim_mode::shared) {
            arguments.push_back(owner());
        }
        const bool may_read = arguments.size() == 3;
        run(scripts::moving_extend(), key(), arguments, [this, may_read](const value& field) {
            if (verdict(field) == 0) {
                tell_loss();
            } else if (may_read && verdict(field) == 2) {
                renew_reader();
            } else {
                renew_record();
            }
        });
    }

private:
    void renew_permits(const std::string& hold) {
        run(scripts::moving_permits(), semaphore_timeouts(key()), {"renew", hold, ttl_, "", ""},
            [this](const value& answer) { verdict(answer) == 1 ? renewed() : tell_loss(); });
    }
    void renew_reader() {
        run(scripts::moving_extend(), timeout_of(key(), owner()), {ttl_},
            [this](const value& answer) { verdict(answer) == 1 ? renew_record() : tell_loss(); });
    }
    /// Without it the hold's tokens are forgotten, no more.
    void renew_record() {
        run(scripts::moving_extend(), holds_key(key()), {ttl_, owner()},
            [this](const value&) { renewed(); });
    }
    void renewed() { finish({renew_reply::outcome::renewed, {}}); }
    void tell_loss() {
        ask({"GET", revocation_key(key())}, [this](const value& answer) {
            const auto record = read_revocation(answer.text);
            finish({renew_reply::outcome::gone,
                    records::loss_of(request().owner, record ? &*record : nullptr)});
        });
    }

    std::string ttl_;
};

class release final : public walk<release_request, release_reply> {
public:
    using walk::walk;

    void start() {
        linger_ = std::to_string(request().linger.count());
        if (request().mode == claim_mode::permit) {
            ask({"HGET", holds_key(key()), owner()},
                [this](const value& hold) { end_permits(hold.text); });
            return;
        }
        const bool fair = request().kind == lock_kind::fair_mutex;
        const auto channel = fair ? std::string{} : channel_of(request().kind, key());
        run(scripts::moving_release(), key(), {owner(), dialect_in_use().publish, linger_, channel},
            [this](const value& answer) { released_lock(answer); });
    }

private:
    void end_permits(const std::string& hold) {
        run(scripts::moving_permits(), semaphore_timeouts(key()),
            {"release", hold, linger_, dialect_in_use().publish, semaphore_channel(key())},
            [this](const value& answer) { verdict(answer) == 1 ? forget_record(answer) : gone(); });
    }
    void released_lock(const value& answer) {
        switch (verdict(answer)) {
            case 2:
                end_reader(answer);
                break;
            case 1:
                request().kind == lock_kind::fair_mutex ? call_next(answer) : forget_record(answer);
                break;
            default:
                request().kind == lock_kind::fair_mutex ? leave_line() : take_back_request();
        }
    }
    /// The reader's lease was over if its timeout key is gone. It has left already: asked again after a
    /// failure, it would be told that it had lost the lock.
    void end_reader(const value& released) {
        const auto timeout = timeout_of(key(), owner());
        const auto next = [this, released](const value* answer) {
            answer == nullptr || verdict(*answer) == 1 ? forget_record(released) : gone();
        };
        if (lingers()) {
            // What is to stay is still there: this may be asked again.
            ask({"PEXPIRE", timeout, linger_}, [next](const value& answer) { next(&answer); });
        } else {
            try_to({"DEL", timeout}, next);
        }
    }
    /// The first in the line of a fair lock looks for itself, or is dead.
    void call_next(const value& released) {
        try_to({"LINDEX", fair_queue(key()), "0"}, [this, released](const value* head) {
            if (head == nullptr || head->text.empty() || lingers()) {
                forget_record(released);
                return;
            }
            try_to({dialect_in_use().publish, fair_channel(key(), head->text), "0"},
                   [this, released](const value*) { forget_record(released); });
        });
    }
    void forget_record(const value& released) {
        release_reply reply;
        reply.result = release_reply::outcome::released;
        if (released.items.size() > 1) {
            reply.others_waiting = static_cast<std::uint32_t>(released.items[1].integer);
        }
        if (lingers()) {
            finish(reply);
            return;
        }
        try_to({"HDEL", holds_key(key()), owner()}, [this, reply](const value*) { finish(reply); });
    }
    void leave_line() {
        try_to({"LREM", fair_queue(key()), "1", owner()}, [this](const value*) {
            try_to({"ZREM", fair_timeouts(key()), owner()}, [this](const value*) {
                try_to({"HDEL", fair_wishes(key()), owner()}, [this](const value*) { gone(); });
            });
        });
    }
    void take_back_request() {
        // A lock has 256 places for requests. A longer list is somebody else's.
        ask({"LRANGE", lock_wishes(key()), "0", "255"}, [this](const value& requests) {
            for (const auto& each : requests.items) {
                if (each.text.starts_with(owner() + ' ')) {
                    try_to({"LREM", lock_wishes(key()), "1", each.text},
                           [this](const value*) { gone(); });
                    return;
                }
            }
            gone();
        });
    }
    void gone() { finish({release_reply::outcome::gone, 0, {}}); }
    [[nodiscard]] bool lingers() const noexcept { return request().linger.count() > 0; }

    std::string linger_;
};

}  // namespace

bool says_moving(const connection::result& result) noexcept {
    return !result.error && result.replies.front().error_code() == "TRYAGAIN";
}

void renew_while_moving(const std::shared_ptr<const catalogue>& from, renew_request request,
                        call limits, completion<renew_reply> done) {
    std::make_shared<renewal>(from, std::move(request), limits, std::move(done))->start();
}

void release_while_moving(const std::shared_ptr<const catalogue>& from, release_request request,
                          call limits, completion<release_reply> done) {
    std::make_shared<release>(from, std::move(request), limits, std::move(done))->start();
}

}  // namespace holdfast::engines::redis
