#include <common/net/node_address.hpp>

namespace holdfast::engines::net {

std::string node_address::text() const {
    if (!path.empty()) {
        return path;
    }
    const bool has_colons = host.find(':') != std::string::npos;
    return (has_colons ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace holdfast::engines::net
