#include <quorum/engine.hpp>

#include <common/validate.hpp>
#include <quorum/merge.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

/// What people ask a quorum, and the force release.
namespace holdfast::engines::quorums {

/// One name, looked at on all members.
struct inspection {
    std::string name;
    std::vector<std::optional<lock_info>> answers;
    std::vector<failure> failures;
    std::function<void(inspection&)> done;

    [[nodiscard]] std::size_t answered() const {
        return static_cast<std::size_t>(std::count_if(
            answers.begin(), answers.end(), [](const auto& each) { return each.has_value(); }));
    }
    [[nodiscard]] bool enough() const { return answered() >= core::majority_of(answers.size()); }
    /// Everybody is waited for, suspects only if too few others have answered.
    [[nodiscard]] bool waits_for_more(const std::vector<bool>& suspects) const {
        for (std::size_t member = 0; member < answers.size(); ++member) {
            const bool out = !answers[member] && !failures[member];
            if (out && (!suspects[member] || !enough())) {
                return true;
            }
        }
        return false;
    }
};

/// One force release on its way through the members.
struct revocation {
    revoke_request request;
    call how;
    core::quorum_tally votes;
    std::vector<failure> failures;
    completion<revoke_reply> done;
};

/// A page of a list, in the making: the names that one member knows, then those that only the next
/// ones know. The lists of a majority name everything that a majority holds, so a member that cannot
/// list is left out, and what it knows is listed with the others.
struct listing {
    list_request request;
    call how;
    completion<list_reply> done;
    std::size_t member{};
    std::string cursor{};
    /// So many members, the first ones, have listed what they know, or some of it, in earlier pages.
    std::size_t listed_before{};
    list_reply reply{};
    std::size_t names_out{};
    std::size_t pages_left{};
    std::vector<failure> failures{};
};

namespace {

using vote = core::quorum_tally::vote;
using verdict = core::quorum_tally::verdict;

const failure shut_down{errc::shut_down, "shutdown was called, or the client was destroyed"};

/// The hold that is meant, under the owner that the member knows it by.
[[nodiscard]] const holder_info* find_holder(const lock_info& info, const revoke_request& request) {
    const auto found =
        std::find_if(info.holders.begin(), info.holders.end(), [&](const holder_info& holder) {
            return outer_owner(holder.owner) == request.owner && holder.token == request.token;
        });
    return found == info.holders.end() ? nullptr : &*found;
}

[[nodiscard]] bool has_holders(const std::optional<lock_info>& info) {
    return info && !info->holders.empty();
}

/// "<member>!<member that could not list>…:<the member's own cursor>"
[[nodiscard]] std::string cursor_of(const listing& what) {
    std::string text = std::to_string(what.member);
    for (std::size_t member = 0; member < what.failures.size(); ++member) {
        if (what.failures[member]) {
            text += "!" + std::to_string(member);
        }
    }
    return text + ":" + what.cursor;
}

[[nodiscard]] failure parse_cursor(const std::string& from, listing& what) {
    if (from.empty()) {
        return {};
    }
    failure refusal{errc::invalid_argument, "this is not where a list of a quorum goes on"};
    const auto colon = from.find(':');
    if (colon == std::string::npos) {
        return refusal;
    }
    const auto* const end = from.data() + colon;
    std::vector<std::size_t> numbers;
    const auto* place = from.data();
    for (bool more = true; more; ++place) {
        std::size_t number{};
        const auto [stopped, problem] = std::from_chars(place, end, number);
        more = stopped != end;
        if (problem != std::errc{} || (more && *stopped != '!') || number >= what.failures.size()) {
            return refusal;
        }
        numbers.push_back(number);
        place = stopped;
    }
    what.member = numbers.front();
    for (auto each = numbers.begin() + 1; each != numbers.end(); ++each) {
        what.failures[*each] = {errc::store_unavailable, "did not list its locks"};
    }
    what.cursor = from.substr(colon + 1);
    return {};
}

}  // namespace

void quorum_engine::inspect_members(std::string name, call how, std::function<void(inspection&)> done) {
    auto what = std::make_shared<inspection>();
    what->name = std::move(name);
    what->answers.resize(members_.size());
    what->failures.resize(members_.size());
    what->done = std::move(done);
    const auto order = asking_order();
    const auto deadline = query_deadline(how);
    for (const auto member : order) {
        const auto share = share_of(how, deadline, member == order.back());
        const bool called = use(member, [&](engine& store) {
            store.offers().operators->inspect(what->name, share,
                                              [this, what, member](inspect_reply reply) {
                                                  inspected(*what, member, std::move(reply));
                                              });
        });
        if (!called) {
            inspected(*what, member, {{}, shut_down});
        }
    }
}

void quorum_engine::inspected(inspection& what, std::size_t member, inspect_reply reply) {
    std::function<void(inspection&)> finish;
    {
        const std::lock_guard lock{guard_};
        note_answer(member, reply.error);
        if (!what.done) {
            return;
        }
        what.failures[member] = reply.error;
        if (!reply.error) {
            what.answers[member] = std::move(reply.info);
        }
        if (what.waits_for_more(suspects_)) {
            return;
        }
        finish = std::exchange(what.done, {});
    }
    finish(what);
}

void quorum_engine::inspect(std::string name, call how, completion<inspect_reply> done) {
    inspect_reply reply;
    reply.error = check_name(name);
    if (!reply.error) {
        reply.error = lateness(how);
    }
    if (reply.error) {
        done(std::move(reply));
        return;
    }
    inspect_members(std::move(name), how, [this, done = std::move(done)](inspection& seen) {
        inspect_reply answer;
        if (seen.enough()) {
            answer.info = merge(seen.name, seen.answers);
        } else {
            answer.error = core::combined_failure(names_, seen.failures);
        }
        done(std::move(answer));
    });
}

void quorum_engine::revoke(revoke_request request, call how, completion<revoke_reply> done) {
    auto bad = check_request(request, promises_);
    if (!bad) {
        bad = lateness(how);
    }
    if (bad) {
        done({revoke_reply::outcome::failed, std::move(bad)});
        return;
    }
    auto what = std::make_shared<revocation>(
        revocation{std::move(request), how, core::quorum_tally{members_.size()},
                   std::vector<failure>(members_.size()), std::move(done)});
    for (std::size_t member = 0; member < members_.size(); ++member) {
        // Members may know the owner by different numbers: each is asked first.
        const bool called = use(member, [&](engine& store) {
            store.offers().operators->inspect(what->request.name,
                                              {how.deadline, caller::must_not_block},
                                              [this, what, member](const inspect_reply& seen) {
                                                  revoke_what_is_there(what, member, seen);
                                              });
        });
        if (!called) {
            revocation_answered(*what, member, {revoke_reply::outcome::failed, shut_down});
        }
    }
}

void quorum_engine::revoke_what_is_there(const std::shared_ptr<revocation>& what, std::size_t member,
                                         const inspect_reply& seen) {
    if (seen.error) {
        revocation_answered(*what, member, {revoke_reply::outcome::failed, seen.error});
        return;
    }
    const auto* const holder = find_holder(seen.info, what->request);
    if (holder == nullptr) {
        revocation_answered(*what, member, {revoke_reply::outcome::gone, {}});
        return;
    }
    auto exact = what->request;
    exact.owner = holder->owner;
    const bool called = use(member, [&](engine& store) {
        store.offers().operators->revoke(exact, {what->how.deadline, caller::must_not_block},
                                         [this, what, member](revoke_reply reply) {
                                             revocation_answered(*what, member, std::move(reply));
                                         });
    });
    if (!called) {
        revocation_answered(*what, member, {revoke_reply::outcome::failed, shut_down});
    }
}

void quorum_engine::revocation_answered(revocation& what, std::size_t member, revoke_reply reply) {
    using outcome = revoke_reply::outcome;
    completion<revoke_reply> finish;
    revoke_reply answer;
    {
        const std::lock_guard lock{guard_};
        note_answer(member, reply.error);
        what.votes.add(reply.result == outcome::revoked ? vote::done
                       : reply.result == outcome::gone  ? vote::gone
                                                        : vote::failed);
        what.failures[member] = std::move(reply.error);
        const auto result = what.votes.result();
        if (result == verdict::open || !what.done) {
            return;
        }
        answer.result = result == verdict::done   ? outcome::revoked
                        : result == verdict::gone ? outcome::gone
                                                  : outcome::failed;
        if (result == verdict::failed) {
            answer.error = core::combined_failure(names_, what.failures);
        }
        finish = std::exchange(what.done, {});
    }
    finish(std::move(answer));
}

void quorum_engine::list(list_request request, call how, completion<list_reply> done) {
    auto what = std::make_shared<listing>();
    what->failures.resize(members_.size());
    auto bad = check_request(request, promises_);
    if (!bad) {
        bad = parse_cursor(request.from, *what);
    }
    if (!bad) {
        bad = lateness(how);
    }
    if (bad) {
        list_reply reply;
        reply.error = std::move(bad);
        done(std::move(reply));
        return;
    }
    what->request = std::move(request);
    what->how = how;
    what->done = std::move(done);
    what->pages_left = 2 * members_.size();
    what->listed_before = what->member + (what->cursor.empty() ? 0 : 1);
    list_page(what);
}

/// Asks the member whose turn it is for what still fits.
void quorum_engine::list_page(const std::shared_ptr<listing>& what) {
    const auto room = what->request.limit - what->reply.locks.size();
    const bool over = what->member == members_.size();
    const auto failed = static_cast<std::size_t>(
        std::count_if(what->failures.begin(), what->failures.end(),
                      [](const failure& why) { return static_cast<bool>(why); }));
    if (failed > members_.size() - core::majority_of(members_.size())) {
        what->reply.error = core::combined_failure(names_, what->failures);
        what->reply.locks.clear();
        what->done(std::move(what->reply));
        return;
    }
    if (over || room == 0 || what->pages_left == 0) {
        what->reply.next = over ? "" : cursor_of(*what);
        what->done(std::move(what->reply));
        return;
    }
    --what->pages_left;
    const auto member = what->member;
    // A member that does not answer leaves time for the others, and for looking at what they list.
    const auto left = what->how.deadline - now();
    const auto shares = static_cast<clock::rep>(members_.size() - member + 1);
    const call share{now() + std::max<clock::duration>(left, clock::duration{}) / shares,
                     caller::must_not_block};
    const bool called = use(member, [&](engine& store) {
        store.offers().operators->list({what->request.prefix, what->cursor, room}, share,
                                       [this, what, member](const list_reply& page) {
                                           {
                                               const std::lock_guard lock{guard_};
                                               note_answer(member, page.error);
                                           }
                                           list_names(what, page);
                                       });
    });
    if (!called) {
        what->reply.error = shut_down;
        what->done(std::move(what->reply));
    }
}

/// Looks at every name of a page on all members. What is known to a member that could list in an
/// earlier page was listed there. Of this page only the list itself tells: a member may have been
/// granted the lock after it listed.
void quorum_engine::list_names(const std::shared_ptr<listing>& what, const list_reply& page) {
    const auto member = what->member;
    const auto before = std::min(what->listed_before, member);
    what->cursor = page.error ? "" : page.next;
    // A member that knows only a part of its locks has not listed them.
    if (page.error || page.missing) {
        what->failures[member] = page.error ? page.error : page.missing;
    }
    if (what->cursor.empty()) {
        ++what->member;
    }
    what->names_out = page.locks.size() + 1;
    const auto looked_at = [this, what] {
        {
            const std::lock_guard lock{guard_};
            if (--what->names_out > 0) {
                return;
            }
        }
        if (what->reply.error) {
            what->reply.locks.clear();
            what->done(std::move(what->reply));
            return;
        }
        list_page(what);
    };
    for (const auto& lock : page.locks) {
        inspect_members(
            lock.name, {what->how.deadline, caller::must_not_block},
            [this, what, before, looked_at](inspection& seen) {
                auto info = merge(seen.name, seen.answers);
                {
                    const std::lock_guard guard{guard_};
                    const auto& all = what->reply.locks;
                    bool listed = std::any_of(all.begin(), all.end(), [&](const lock_info& one) {
                        return one.name == seen.name;
                    });
                    for (std::size_t earlier = 0; earlier < before; ++earlier) {
                        listed =
                            listed || (!what->failures[earlier] && has_holders(seen.answers[earlier]));
                    }
                    // Somebody else's key at a member is no vote for a lock.
                    const bool foreign =
                        std::any_of(seen.failures.begin(), seen.failures.end(),
                                    [](const failure& why) { return why.code == errc::wrong_kind; });
                    if (!seen.enough() && !foreign) {
                        what->reply.error = core::combined_failure(names_, seen.failures);
                    } else if (seen.enough() && !listed && !info.holders.empty()) {
                        what->reply.locks.push_back(std::move(info));
                    }
                }
                looked_at();
            });
    }
    looked_at();
}

void quorum_engine::examine(call how, completion<examine_reply> done) {
    struct state {
        std::vector<std::vector<finding>> found;
        std::size_t awaited;
        completion<examine_reply> done;
    };
    auto what = std::make_shared<state>(
        state{std::vector<std::vector<finding>>(members_.size()), members_.size(), std::move(done)});
    const auto examined = [this, what](std::size_t member, examine_reply reply) {
        if (reply.error) {
            reply.findings.push_back({finding::severity::warning, {}, reply.error.detail});
        }
        for (auto& each : reply.findings) {
            // A member that forgets, and votes at once when it is back, may grant what is held.
            if (each.may_forget && options_.restart_grace.count() == 0) {
                each.level = finding::severity::warning;
                each.text += ", or give the quorum a restart_grace of the longest ttl";
            } else if (each.may_forget) {
                each.level = finding::severity::advice;
                each.text += ". The quorum's restart_grace serves as well if no ttl is longer";
            }
            each.server = names_[member] + (each.server.empty() ? "" : ", ") + each.server;
        }
        {
            const std::lock_guard lock{guard_};
            note_answer(member, reply.error);
            what->found[member] = std::move(reply.findings);
            if (--what->awaited > 0) {
                return;
            }
        }
        examine_reply all;
        for (auto& part : what->found) {
            std::move(part.begin(), part.end(), std::back_inserter(all.findings));
        }
        what->done(std::move(all));
    };
    for (std::size_t member = 0; member < members_.size(); ++member) {
        const bool called = use(member, [&](engine& store) {
            auto* const inside = store.offers().examination;
            if (inside == nullptr) {
                examined(member, {});
                return;
            }
            inside->examine(
                {how.deadline, caller::must_not_block},
                [examined, member](examine_reply reply) { examined(member, std::move(reply)); });
        });
        if (!called) {
            examined(member, {{}, shut_down});
        }
    }
}

}  // namespace holdfast::engines::quorums
