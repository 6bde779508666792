#include <algorithm>
#include <redis/address.hpp>

namespace holdfast::engines::redis {

namespace {

[[nodiscard]] bool is_socket(const address& store) {
    return !store.nodes.empty() && !store.nodes.front().path.empty();
}

/// Names of hosts are the same in capitals.
[[nodiscard]] std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
}

/// A value as an address has it. Quotes, blanks and the like are taken apart by programs that cut
/// addresses out of a text.
[[nodiscard]] std::string encoded(std::string_view text) {
    constexpr std::string_view special = "\"#%&'<>?@\\`";
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string result;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte != 0x7F && special.find(c) == std::string_view::npos) {
            result += c;
        } else {
            result += {'%', digits[byte >> 4U], digits[byte & 0xFU]};
        }
    }
    return result;
}

}  // namespace

std::string shown_text(std::string_view scheme, const address& store) {
    std::string text = std::string{scheme} + "://";
    for (const node_address& node : store.nodes) {
        text += &node == &store.nodes.front() ? "" : ",";
        text += node.text();
    }
    if (!store.service.empty()) {
        text += "/" + store.service;
    }
    if (store.connection.database != 0) {
        text += (is_socket(store) ? "?database=" : "/") + std::to_string(store.connection.database);
    }
    if (!store.prefix.empty()) {
        const bool first = text.find('?') == std::string::npos;
        text += (first ? "?prefix=" : "&prefix=") + encoded(store.prefix);
    }
    return text;
}

std::string identity_text(std::string_view scheme, const address& store) {
    std::vector<std::string> nodes;
    for (const node_address& node : store.nodes) {
        nodes.push_back(is_socket(store) ? node.text() : lower(node.text()));
    }
    std::sort(nodes.begin(), nodes.end());
    std::string text = std::string{scheme} + "://";
    for (const auto& node : nodes) {
        text += node + ",";
    }
    // The service's length tells where it ends, and the prefix comes last: both may hold anything.
    return text + "/" + std::to_string(store.service.size()) + ":" + store.service + "/" +
           std::to_string(store.connection.database) + "/" + store.prefix;
}

}  // namespace holdfast::engines::redis
