#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <string_view>

#include "stage.hpp"

/// Texts of errors say each thing once.
namespace holdfast::testing {

namespace {

using namespace std::chrono_literals;

[[nodiscard]] std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

[[nodiscard]] std::size_t occurrences(const std::string& text, std::string_view words) {
    std::size_t count = 0;
    for (auto found = text.find(words); found != std::string::npos;
         found = text.find(words, found + words.size())) {
        ++count;
    }
    return count;
}

/// What must not be said twice: the words of the error, and their beginning and end in other words.
[[nodiscard]] std::vector<std::string> said_once(std::error_code error) {
    std::vector<std::string> words{lower(error.message())};
    if (error == errc::shut_down) {
        words.emplace_back("shut down");
    } else if (error == errc::forked) {
        words.emplace_back("fork");
    } else if (error == errc::wrong_kind) {
        words.emplace_back("another kind");
    } else if (error == errc::store_unavailable) {
        words.emplace_back("unavailable");
    }
    return words;
}

void expect_once(const std::system_error& error) {
    const auto text = lower(error.what());
    for (const auto& words : said_once(error.code())) {
        EXPECT_EQ(occurrences(text, words), 1U) << error.what();
    }
    std::string before;
    for (std::size_t at = 0; at < text.size();) {
        const auto ends = std::min(text.find(": ", at), text.size());
        const auto part = text.substr(at, ends - at);
        EXPECT_NE(part, before) << error.what();
        before = part;
        at = ends + 2;
    }
}

template <class Call>
void expect_once_from(errc code, const Call& call) {
    try {
        static_cast<void>(call());
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        expect_once(error);
        return;
    }
    ADD_FAILURE() << "no error where " << make_error_code(code).message() << " was expected";
}

[[nodiscard]] std::vector<errc> all_errors() {
    std::vector<errc> all;
    for (int value = static_cast<int>(errc::busy); value <= static_cast<int>(errc::store_error);
         ++value) {
        all.push_back(static_cast<errc>(value));
    }
    return all;
}

TEST(error_text, a_detail_that_ends_in_the_words_of_its_error_does_not_double_them) {
    for (const auto code : all_errors()) {
        const auto words = make_error_code(code).message();
        for (const auto& detail : {std::string{}, words, "no answer: " + words,
                                   "no answer: " + words + ": " + words, std::string{"no answer"}}) {
            expect_once_from(code, [&] { failure{code, detail}.raise("lock \"stock\" on store:"); });
        }
    }
}

class error_text_test : public stage {};

/// Whatever the store says, through the calls that ask it.
TEST_F(error_text_test, of_the_store_is_passed_on_once) {
    for (const auto code : all_errors()) {
        const auto words = make_error_code(code).message();
        for (const auto& detail : {std::string{}, words, std::string{"the disk is full"}}) {
            if (code != errc::busy && code != errc::cancelled) {
                plan_->fail_next(call_kind::acquire, 1, {code, detail});
                expect_once_from(code, [&] { return mutex{client_, "stock"}.try_lock(); });
            }
            plan_->fail_next(call_kind::inspect, 1, {code, detail});
            expect_once_from(code, [&] { return client_.inspect("stock"); });
            plan_->fail_next(call_kind::list, 1, {code, detail});
            expect_once_from(code, [&] { return client_.list(); });
        }
    }
}

TEST_F(error_text_test, of_wrong_arguments_says_it_once) {
    expect_once_from(errc::invalid_name, [&] { mutex{client_, ""}; });
    expect_once_from(errc::invalid_name, [&] { mutex{client_, "two\nlines"}; });
    expect_once_from(errc::invalid_argument, [&] { mutex(client_, "x", {.ttl = 0ms}); });
    expect_once_from(errc::invalid_argument, [&] { semaphore(client_, "x", 0); });
    expect_once_from(errc::invalid_argument, [&] { return semaphore(client_, "x", 2).acquire(3); });
    expect_once_from(errc::invalid_argument, [&] { multi_lock(client_, std::vector<std::string>{}); });
    expect_once_from(errc::invalid_argument, [&] { striped_mutex(client_, "x", 0); });
    expect_once_from(errc::invalid_argument, [&] { client("memory:", {.request_timeout = 0ms}); });
    expect_once_from(errc::lost, [] { lease{}.check(); });
    expect_once_from(errc::bad_configuration, [] { client{"nonsense"}; });
    expect_once_from(errc::bad_configuration, [] { client{"nosuch:x"}; });
    expect_once_from(errc::bad_configuration, [] { client{"local:relative"}; });
    expect_once_from(errc::guarantee_not_met, [] { client("memory:", {.require = scope::fleet}); });
    const auto permit = semaphore{client_, "permits", 2}.acquire();
    expect_once_from(errc::wrong_kind, [&] { return mutex{client_, "permits"}.try_lock(); });
    expect_once_from(errc::wrong_kind, [&] { return semaphore{client_, "permits", 3}.try_acquire(); });
}

TEST_F(error_text_test, of_a_client_that_is_gone_says_it_once) {
    mutex lock{client_, "stock"};
    const auto held = mutex{client_, "other"}.acquire();
    latch gate{client_, "gate"};
    static_cast<void>(client_.shutdown(2s));
    expect_once_from(errc::shut_down, [&] { lock.lock(); });
    expect_once_from(errc::shut_down, [&] { return lock.try_lock(); });
    expect_once_from(errc::shut_down, [&] { held.check(); });
    expect_once_from(errc::shut_down, [&] { return gate.count(); });
    expect_once_from(errc::shut_down, [&] { return client_.inspect("stock"); });
    expect_once_from(errc::shut_down, [&] { return client_.list(); });
}

TEST_F(error_text_test, after_a_fork_says_it_once) {
    mutex lock{client_, "stock"};
    latch gate{client_, "gate"};
    const auto child = ::fork();
    if (child == 0) {
        expect_once_from(errc::forked, [&] { lock.lock(); });
        expect_once_from(errc::forked, [&] { return gate.count(); });
        expect_once_from(errc::forked, [&] { return client_.inspect("stock"); });
        ::_exit(HasFailure() ? 1 : 0);
    }
    int status{};
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

}  // namespace holdfast::testing
