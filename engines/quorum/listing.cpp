#include <quorum/listing.hpp>

#include <quorum/inspection.hpp>
#include <quorum/merge.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::engines::quorums {

namespace {

/// Where a list goes on. As text: "<member>!<member that could not list>…:<the member's own cursor>"
struct list_position {
    std::size_t member{};
    std::string cursor{};
    /// Why members could not list what they know.
    std::vector<failure> failures;

    [[nodiscard]] std::string text() const {
        std::string text = std::to_string(member);
        for (std::size_t each = 0; each < failures.size(); ++each) {
            if (failures[each]) {
                text += "!" + std::to_string(each);
            }
        }
        return text + ":" + cursor;
    }

    /// Empty: the first page.
    [[nodiscard]] failure parse(const std::string& text) {
        if (text.empty()) {
            return {};
        }
        failure refusal{errc::invalid_argument, "this is not where a list of a quorum goes on"};
        const auto colon = text.find(':');
        if (colon == std::string::npos) {
            return refusal;
        }
        const auto* const end = text.data() + colon;
        std::vector<std::size_t> numbers;
        const auto* place = text.data();
        for (bool more = true; more; ++place) {
            std::size_t number{};
            const auto [stopped, problem] = std::from_chars(place, end, number);
            more = stopped != end;
            if (problem != std::errc{} || (more && *stopped != '!') || number >= failures.size()) {
                return refusal;
            }
            numbers.push_back(number);
            place = stopped;
        }
        member = numbers.front();
        for (auto each = numbers.begin() + 1; each != numbers.end(); ++each) {
            failures[*each] = {errc::store_unavailable, "did not list its locks"};
        }
        cursor = text.substr(colon + 1);
        return {};
    }
};

/// A page of a list, in the making.
///
/// Thread safety: one page of a member is under way at a time. While its names are inspected, `guard_`
/// guards the reply and the count of them.
class listing : public std::enable_shared_from_this<listing> {
public:
    listing(member_set& members, list_request request, const call& limits, completion<list_reply> done,
            list_position position)
        : members_{members},
          request_{std::move(request)},
          deadline_{limits.deadline},
          done_{std::move(done)},
          position_{std::move(position)},
          listed_before_{position_.member + (position_.cursor.empty() ? 0 : 1)},
          pages_left_{2 * members.size()} {}

    /// Asks the member whose turn it is for what still fits.
    void next_page() {
        const auto& failures = position_.failures;
        const auto failed = static_cast<std::size_t>(std::count_if(
            failures.begin(), failures.end(), [](const failure& each) { return bool{each}; }));
        if (failed > members_.size() - members_.majority()) {
            fail(core::combined_failure(members_.names(), failures));
            return;
        }
        const auto room = request_.limit - reply_.locks.size();
        const bool over = position_.member == members_.size();
        if (over || room == 0 || pages_left_ == 0) {
            reply_.next = over ? "" : position_.text();
            done_(std::move(reply_));
            return;
        }
        --pages_left_;
        // A member that does not answer leaves time for the others, and for inspecting what they list.
        const auto left = deadline_ - members_.now();
        const auto shares = static_cast<clock::rep>(members_.size() - position_.member + 1);
        const call limits{members_.now() + std::max<clock::duration>(left, clock::duration{}) / shares,
                          caller::must_not_block};
        members_.ask(
            position_.member, &operators_view::list, {request_.prefix, position_.cursor, room}, limits,
            [self = shared_from_this()](const list_reply& page) { self->inspect_names(page); });
    }

private:
    void fail(failure reason) {
        reply_.locks.clear();
        reply_.error = std::move(reason);
        done_(std::move(reply_));
    }

    /// Inspects every name of a page on all members. What is known to a member that could list in an
    /// earlier page was listed there. Of this page only the list itself tells: a member may have
    /// granted the lock after it listed.
    void inspect_names(const list_reply& page) {
        if (page.error.code == errc::shut_down) {
            fail(page.error);
            return;
        }
        const auto before = std::min(listed_before_, position_.member);
        position_.cursor = page.error ? "" : page.next;
        // A member that knows only a part of its locks has not listed them.
        if (page.error || page.missing) {
            position_.failures[position_.member] = page.error ? page.error : page.missing;
        }
        if (position_.cursor.empty()) {
            ++position_.member;
        }
        names_left_ = page.locks.size() + 1;
        for (const auto& lock : page.locks) {
            inspect_members(members_, lock.name, {deadline_, caller::must_not_block},
                            [self = shared_from_this(), before](const inspection& seen) {
                                self->add(seen, before);
                                self->inspected();
                            });
        }
        inspected();
    }

    void add(const inspection& seen, std::size_t before) {
        auto info = merge(seen.name, seen.answers);
        // A foreign key at a member is no vote for a lock.
        const bool foreign =
            std::any_of(seen.failures.begin(), seen.failures.end(),
                        [](const failure& reason) { return reason.code == errc::wrong_kind; });
        const std::lock_guard lock{guard_};
        if (!seen.enough()) {
            if (!foreign) {
                reply_.error = core::combined_failure(members_.names(), seen.failures);
            }
        } else if (!info.holders.empty() && !listed(seen, before)) {
            reply_.locks.push_back(std::move(info));
        }
    }

    /// In this page, or in an earlier one by a member before `before`.
    [[nodiscard]] bool listed(const inspection& seen, std::size_t before) const {
        for (std::size_t earlier = 0; earlier < before; ++earlier) {
            const auto& answer = seen.answers[earlier];
            if (!position_.failures[earlier] && answer && !answer->holders.empty()) {
                return true;
            }
        }
        return std::any_of(reply_.locks.begin(), reply_.locks.end(),
                           [&](const lock_info& each) { return each.name == seen.name; });
    }

    void inspected() {
        {
            const std::lock_guard lock{guard_};
            if (--names_left_ > 0) {
                return;
            }
        }
        if (reply_.error) {
            fail(reply_.error);
        } else {
            next_page();
        }
    }

    member_set& members_;
    const list_request request_;
    const clock::time_point deadline_;
    const completion<list_reply> done_;
    list_position position_;
    /// So many members, the first ones, have listed what they know, or some of it, in earlier pages.
    const std::size_t listed_before_;
    std::size_t pages_left_;
    std::mutex guard_;
    list_reply reply_{};
    std::size_t names_left_{};
};

}  // namespace

void list_all(member_set& members, list_request request, const call& limits,
              completion<list_reply> done) {
    list_position position;
    position.failures.resize(members.size());
    if (auto bad = position.parse(request.from)) {
        list_reply reply;
        reply.error = std::move(bad);
        done(std::move(reply));
        return;
    }
    std::make_shared<listing>(members, std::move(request), limits, std::move(done), std::move(position))
        ->next_page();
}

}  // namespace holdfast::engines::quorums
