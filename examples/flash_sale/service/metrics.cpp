#include "metrics.hpp"

#include <sstream>

namespace flash_sale {

namespace {

std::string answer_labels(const std::string& strategy, std::string_view outcome) {
    return "{strategy=\"" + strategy + "\",outcome=\"" + std::string{outcome} + "\"}";
}

std::string shortest(double value) {
    std::ostringstream out;
    out << value;
    return out.str();
}

}  // namespace

void metrics::count(const std::string& strategy, sale::outcome result, std::chrono::nanoseconds took) {
    const auto seconds = std::chrono::duration<double>{took}.count();
    const std::scoped_lock hold{guard_};
    ++answers_[answer_labels(strategy, to_string(result))];
    auto& latency = latencies_[strategy];
    for (std::size_t index = 0; index < limits.size(); ++index) {
        latency.below[index] += seconds <= limits[index] ? 1 : 0;
    }
    ++latency.count;
    latency.sum += seconds;
}

void metrics::count_failure(const std::string& strategy) {
    const std::scoped_lock hold{guard_};
    ++answers_[answer_labels(strategy, "failed")];
}

void metrics::on_event(const holdfast::event& news) noexcept {
    try {
        const std::scoped_lock hold{guard_};
        ++events_[std::string{to_string(news.kind)}];
    } catch (const std::exception&) {
        // Out of memory: one event less in the figures is the least of the worries.
    }
}

std::string metrics::text() const {
    const std::scoped_lock hold{guard_};
    std::string all = "# TYPE flash_sale_answers_total counter\n";
    for (const auto& [labels, number] : answers_) {
        all += "flash_sale_answers_total" + labels + " " + std::to_string(number) + "\n";
    }
    write_latencies(all);
    all += "# TYPE holdfast_events_total counter\n";
    for (const auto& [kind, number] : events_) {
        all += "holdfast_events_total{kind=\"" + kind + "\"} " + std::to_string(number) + "\n";
    }
    all += "# TYPE flash_sale_in_flight gauge\n";
    all += "flash_sale_in_flight " + std::to_string(in_flight_.load()) + "\n";
    return all;
}

void metrics::write_latencies(std::string& into) const {
    into += "# TYPE flash_sale_seconds histogram\n";
    for (const auto& [strategy, latency] : latencies_) {
        const auto labels = "{strategy=\"" + strategy + "\"";
        for (std::size_t index = 0; index < limits.size(); ++index) {
            into += "flash_sale_seconds_bucket" + labels + ",le=\"" + shortest(limits[index]) + "\"} " +
                    std::to_string(latency.below[index]) + "\n";
        }
        into += "flash_sale_seconds_bucket" + labels + ",le=\"+Inf\"} " +
                std::to_string(latency.count) + "\n";
        into += "flash_sale_seconds_sum" + labels + "} " + shortest(latency.sum) + "\n";
        into += "flash_sale_seconds_count" + labels + "} " + std::to_string(latency.count) + "\n";
    }
}

}  // namespace flash_sale
