#pragma once

#include <string_view>

#include <holdfast/error.hpp>

namespace holdfast::engines::redis {

/// What is wrong with a server whose first words are not Redis' protocol, or none at all if they may
/// be. Nothing of them is repeated: a server may repeat the password that it was sent.
[[nodiscard]] failure foreign_protocol(std::string_view first_words);

/// What is said of a server that expects TLS, to those who speak without.
[[nodiscard]] failure expects_tls();

}  // namespace holdfast::engines::redis
