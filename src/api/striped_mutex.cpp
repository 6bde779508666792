#include <holdfast/striped_mutex.hpp>

#include <holdfast/client.hpp>

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {

namespace {

constexpr std::size_t most_stripes = 1'048'576;

}  // namespace

std::uint64_t stable_hash(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char byte : text) {
        hash ^= static_cast<unsigned char>(byte);
        hash *= 0x100000001b3U;
    }
    return hash;
}

striped_mutex::striped_mutex(client& owner, std::string name, std::size_t stripes,
                             const lease_options& options)
    : owner_{owner}, name_{std::move(name)}, options_{options} {
    if (stripes == 0) {
        failure{errc::invalid_argument, "it needs at least one stripe"}.raise("striped_mutex");
    }
    if (stripes > most_stripes) {
        failure{errc::invalid_argument, std::to_string(stripes) + " stripes are too many; at most " +
                                            std::to_string(most_stripes) + " are allowed"}
            .raise("striped_mutex");
    }
    stripes_.reserve(stripes);
    for (std::size_t index = 0; index < stripes; ++index) {
        stripes_.push_back(
            std::make_unique<mutex>(owner, name_ + ":" + std::to_string(index), options));
    }
}

striped_mutex::~striped_mutex() = default;

std::size_t striped_mutex::stripe_of(std::string_view key) const noexcept {
    return static_cast<std::size_t>(stable_hash(key) % stripes_.size());
}

mutex& striped_mutex::of(std::string_view key) const noexcept {
    return *stripes_[stripe_of(key)];
}

multi_lock striped_mutex::of_keys(const std::vector<std::string>& keys) const {
    std::vector<std::string> names;
    names.reserve(keys.size());
    for (const auto& key : keys) {
        names.push_back(of(key).name());
    }
    return multi_lock{owner_, std::move(names), options_};
}

multi_lock striped_mutex::all() const {
    std::vector<std::string> names;
    names.reserve(stripes_.size());
    for (const auto& one : stripes_) {
        names.push_back(one->name());
    }
    return multi_lock{owner_, std::move(names), options_};
}

}  // namespace v0
}  // namespace holdfast
