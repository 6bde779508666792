#pragma once

#include <string_view>

#include <common/net/stream.hpp>
#include <holdfast/error.hpp>

namespace holdfast::engines::redis {

/// For explaining why a server does not answer a TLS handshake.
inline constexpr net::plain_protocol redis_without_tls{
    .request = "PING\r\n", .first_characters = "+-", .advice = "write redis:// instead of rediss://"};

/// What is wrong with a server whose first words are not Redis' protocol, or none at all if they may
/// be. Nothing of them is repeated: a server may repeat the password that it was sent.
[[nodiscard]] failure foreign_protocol(std::string_view first_words);

/// What is said of a server that expects TLS, to those who speak without.
[[nodiscard]] failure expects_tls();

}  // namespace holdfast::engines::redis
