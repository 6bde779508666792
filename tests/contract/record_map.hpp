#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <holdfast/records.hpp>

namespace holdfast::testing {

/// The records that all engines at one address share, in this process.
struct shared_records {
    std::mutex mutex;
    std::map<std::string, engines::stored_record> records;
    std::uint64_t last_version{};
    std::multimap<std::string, std::shared_ptr<std::function<void()>>> listeners;
};

/// The least that a store of records may be, with both of its abilities. A write is answered
/// `answer_delay` after it took effect: the store's clock in the answer is as old.
class record_map final : public engines::record_store,
                         public engines::record_listing,
                         public engines::record_news {
public:
    record_map(std::string address, std::shared_ptr<shared_records> shared,
               std::chrono::milliseconds answer_delay = {})
        : address_{std::move(address)}, shared_{std::move(shared)}, answer_delay_{answer_delay} {}

    [[nodiscard]] const engines::guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }

    [[nodiscard]] engines::record_reply read(const std::string& name, clock::time_point) override {
        const std::lock_guard lock{shared_->mutex};
        return answer(engines::record_reply::outcome::done, name);
    }
    [[nodiscard]] engines::record_reply replace(const engines::record_change& change,
                                                clock::time_point) override {
        auto reply = replace_at_once(change);
        std::this_thread::sleep_for(answer_delay_);  // not a guess: a slow network
        return reply;
    }

    [[nodiscard]] engines::record_listing* listing() noexcept override { return this; }
    [[nodiscard]] engines::record_news* news() noexcept override { return this; }
    [[nodiscard]] page scan(const std::string& prefix, const std::string& after, std::size_t limit,
                            clock::time_point) override {
        const std::lock_guard lock{shared_->mutex};
        page found{.entries = {}, .now = now(), .error = {}};
        auto place = after >= prefix ? shared_->records.upper_bound(after)
                                     : shared_->records.lower_bound(prefix);
        for (; place != shared_->records.end() && place->first.starts_with(prefix) &&
               found.entries.size() < limit;
             ++place) {
            found.entries.push_back({place->first, place->second});
        }
        return found;
    }
    [[nodiscard]] std::unique_ptr<engines::subscription> listen(std::string name,
                                                                std::function<void()> hint) override {
        struct listener final : engines::subscription {
            ~listener() override {
                const std::lock_guard lock{shared->mutex};
                shared->listeners.erase(place);
            }
            [[nodiscard]] bool active() const noexcept override { return true; }
            std::shared_ptr<shared_records> shared;
            decltype(shared_records::listeners)::iterator place;
        };
        auto result = std::make_unique<listener>();
        const std::lock_guard lock{shared_->mutex};
        result->shared = shared_;
        result->place = shared_->listeners.emplace(
            std::move(name), std::make_shared<std::function<void()>>(std::move(hint)));
        return result;
    }

private:
    [[nodiscard]] engines::record_reply replace_at_once(const engines::record_change& change) {
        std::vector<std::shared_ptr<std::function<void()>>> told;
        engines::record_reply reply;
        {
            const std::lock_guard lock{shared_->mutex};
            auto& stored = shared_->records[change.name];
            if (stored.version != change.version) {
                return answer(engines::record_reply::outcome::conflict, change.name);
            }
            stored = {++shared_->last_version, change.bytes};
            reply = answer(engines::record_reply::outcome::done, change.name);
            const auto [first, last] = shared_->listeners.equal_range(change.name);
            std::for_each(first, change.frees ? last : first,
                          [&](const auto& each) { told.push_back(each.second); });
        }
        for (const auto& each : told) {
            (*each)();
        }
        return reply;
    }

    [[nodiscard]] static std::chrono::microseconds now() {
        return std::chrono::duration_cast<std::chrono::microseconds>(
            std::chrono::system_clock::now().time_since_epoch());
    }
    [[nodiscard]] engines::record_reply answer(engines::record_reply::outcome result,
                                               const std::string& name) const {
        const auto found = shared_->records.find(name);
        return {.result = result,
                .current = found == shared_->records.end() ? engines::stored_record{} : found->second,
                .now = now(),
                .error = {}};
    }

    const std::string address_;
    const std::shared_ptr<shared_records> shared_;
    const std::chrono::milliseconds answer_delay_;
    const engines::guarantees promises_{.reach = scope::process,
                                        .reach_text = "this process only",
                                        .tokens = engines::fencing::strict,
                                        .minimum_ttl = std::chrono::milliseconds{20}};
};

}  // namespace holdfast::testing
