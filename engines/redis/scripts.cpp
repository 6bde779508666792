#include <array>
#include <redis/scripts.hpp>
#include <stdexcept>

#include <openssl/evp.h>

namespace holdfast::engines::redis {

namespace {

std::string hexadecimal(std::span<const unsigned char> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const unsigned byte : bytes) {
        text.push_back(digits[byte >> 4U]);
        text.push_back(digits[byte & 0xFU]);
    }
    return text;
}

std::string sha1(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha1(), nullptr) != 1) {
        throw std::runtime_error{"OpenSSL has no SHA-1, without which scripts cannot be named"};
    }
    return hexadecimal({digest.data(), length});
}

}  // namespace

script make_script(std::string_view name, std::string_view text) {
    return {name, text, sha1(text)};
}

}  // namespace holdfast::engines::redis
