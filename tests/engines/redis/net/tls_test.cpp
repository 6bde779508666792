#include <redis/net/connection.hpp>
#include <redis/net/subscriber.hpp>
#include <thread>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include <gtest/gtest.h>

#include "server.hpp"

namespace holdfast::engines::redis::test {

namespace {

/// An authority, a certificate of its for the server and one for a client, and a stranger authority.
class certificates {
public:
    certificates() {
        authority("ca");
        authority("stranger");
        issue("server", "subjectAltName=DNS:localhost,IP:127.0.0.1");
        issue("elsewhere", "subjectAltName=DNS:elsewhere.test");
        issue("client", "extendedKeyUsage=clientAuth");
        issue("expired", "subjectAltName=IP:127.0.0.1", "-1");
        run("pkcs8 -topk8 -passout pass:x -in " + file("client.key") + " -out " + file("locked.key"));
    }
    [[nodiscard]] std::string file(std::string_view name) const { return file_in(directory_, name); }

private:
    void run(const std::string& arguments) const {
        const std::string line = "openssl " + arguments + " >/dev/null 2>&1";
        if (std::system(line.c_str()) != 0) {  // NOLINT(cert-env33-c)
            throw std::runtime_error{"failed: " + line};
        }
    }
    void authority(const std::string& name) const {
        run("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" + name +
            " -keyout " + file(name + ".key") + " -out " + file(name + ".crt"));
    }
    void issue(const std::string& name, const std::string& extension,
               const std::string& days = "2") const {
        std::ofstream{file(name + ".ext")} << extension << "\n";
        run("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name + " -keyout " +
            file(name + ".key") + " -out " + file(name + ".csr"));
        run("x509 -req -days " + days + " -in " + file(name + ".csr") + " -CA " + file("ca.crt") +
            " -CAkey " + file("ca.key") + " -CAcreateserial -extfile " + file(name + ".ext") +
            " -out " + file(name + ".crt"));
    }

    temporary_directory directory_;
};

class tls : public ::testing::Test {
protected:
    static void SetUpTestSuite() { files = std::make_unique<certificates>(); }
    static void TearDownTestSuite() { files.reset(); }

    /// Listens with TLS at `port`, and nowhere else.
    [[nodiscard]] std::unique_ptr<server> start(const std::string& name,
                                                const std::string& clients = "no") {
        return std::make_unique<server>(std::vector<std::string>{
            "--port", "0", "--tls-port", std::to_string(port), "--tls-cert-file",
            files->file(name + ".crt"), "--tls-key-file", files->file(name + ".key"),
            "--tls-ca-cert-file", files->file("ca.crt"), "--tls-auth-clients", clients});
    }
    [[nodiscard]] connection_settings trusting(const std::string& authority) const {
        connection_settings how;
        how.tls = tls_settings{};
        how.tls->ca_file = authority.empty() ? "" : files->file(authority + ".crt");
        return how;
    }
    [[nodiscard]] node_address at(std::string host) const {
        return {.host = std::move(host), .port = port, .path = {}};
    }
    [[nodiscard]] static failure outcome_of(const node_address& where, const connection_settings& how) {
        connection tested{where, how, {}, {}};
        return tested.connect(clock::now() + patience);
    }

    static inline std::unique_ptr<certificates> files;
    std::uint16_t port{free_port()};
};

TEST_F(tls, threads_share_a_connection_and_get_their_own_answers) {
    const auto redis = start("server");
    connection tested{at("127.0.0.1"), trusting("ca"), {}, {}};
    std::atomic<int> wrong{0};
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread) {
        threads.emplace_back([&, thread] {
            for (int count = 0; count < 200; ++count) {
                const std::string word = std::to_string(thread) + ":" + std::to_string(count);
                const auto answer = ask(tested, {"ECHO", word});
                wrong += answer.error || answer.replies.at(0).text != word;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(wrong, 0);
}

TEST_F(tls, a_large_answer_and_a_large_request_go_through) {
    const auto redis = start("server");
    connection tested{at("localhost"), trusting("ca"), {}, {}};
    const std::string large(5'000'000, 'x');
    EXPECT_EQ(ask(tested, {"SET", "large", large}).replies.at(0).text, "OK");
    EXPECT_TRUE(ask(tested, {"GET", "large"}).replies.at(0).text == large);
    std::promise<std::size_t> size;
    tested.send(command({"GET", "large"}), {clock::now() + patience, caller::must_not_block},
                [&](const connection::result& got) { size.set_value(got.replies.at(0).text.size()); });
    EXPECT_EQ(size.get_future().get(), large.size());
}

TEST_F(tls, an_authority_that_is_not_ours_is_not_trusted) {
    const auto redis = start("server");
    for (const std::string authority : {"stranger", ""}) {
        const failure refused = outcome_of(at("127.0.0.1"), trusting(authority));
        EXPECT_EQ(refused.code, errc::bad_configuration);
        EXPECT_NE(refused.detail.find("not trusted"), std::string::npos) << refused.detail;
        EXPECT_NE(refused.detail.find("ca=FILE"), std::string::npos) << refused.detail;
        EXPECT_EQ(refused.detail.find("(it is not in /") != std::string::npos, !authority.empty())
            << refused.detail;
    }
}

TEST_F(tls, a_certificate_for_another_name_is_refused_unless_that_name_is_given) {
    const auto redis = start("elsewhere");
    const failure refused = outcome_of(at("localhost"), trusting("ca"));
    EXPECT_EQ(refused.code, errc::bad_configuration);
    EXPECT_NE(refused.detail.find("\"localhost\""), std::string::npos) << refused.detail;
    EXPECT_NE(refused.detail.find("server_name=NAME"), std::string::npos) << refused.detail;
    EXPECT_EQ(outcome_of(at("127.0.0.1"), trusting("ca")).code, errc::bad_configuration);
    auto named = trusting("ca");
    named.tls->server_name = "elsewhere.test";
    EXPECT_EQ(outcome_of(at("localhost"), named).code, errc{});
}

TEST_F(tls, nothing_is_checked_only_when_the_address_says_so) {
    const auto redis = start("elsewhere");
    auto how = trusting("stranger");
    how.tls->verify = false;
    EXPECT_EQ(outcome_of(at("localhost"), how).code, errc{});
}

TEST_F(tls, a_demanded_client_certificate_is_asked_for_and_shown) {
    const auto redis = start("server", "yes");
    auto how = trusting("ca");
    const failure refused = outcome_of(at("127.0.0.1"), how);
    EXPECT_EQ(refused.code, errc::bad_configuration) << refused.detail;
    EXPECT_NE(refused.detail.find("cert=FILE&key=FILE"), std::string::npos) << refused.detail;
    how.tls->certificate_file = files->file("client.crt");
    how.tls->key_file = files->file("client.key");
    EXPECT_EQ(outcome_of(at("127.0.0.1"), how).code, errc{});
}

/// Without a server: it need not be there.
TEST_F(tls, files_that_cannot_be_used_are_named_with_the_reason) {
    std::ofstream{files->file("empty")};
    std::ofstream{files->file("words")} << "no certificate\n";
    const auto directory = files->file("directory");
    std::filesystem::create_directory(directory);
    const auto certificate = files->file("client.crt");
    const auto key = files->file("client.key");
    const auto nowhere = files->file("nowhere");
    const std::string ca = files->file("ca.crt");
    struct wrong {
        std::string ca, certificate, key, words;
    };
    const std::string none;
    std::vector<wrong> all{
        {ca, certificate, files->file("server.key"),
         "key=" + files->file("server.key") + " cannot be used: it is not the key of the certificate"},
        {ca, certificate, none, "cert=" + certificate + " cannot be used: it holds no private key"},
        {ca, certificate, files->file("locked.key"), "it is protected by a pass phrase"},
        {ca, key, key, "cert=" + key + " cannot be used: it is not a certificate in PEM form"},
        {ca, certificate, certificate, "it is not a private key in PEM form"}};
    const std::vector<std::pair<std::string, std::string>> unreadable{
        {nowhere, "No such file or directory"},
        {directory, "Is a directory"},
        {ca + "/x", "Not a directory"}};
    for (const auto& [path, reason] : unreadable) {
        const auto words = path + " cannot be used: " + reason;
        all.push_back({path, none, none, "ca=" + words});
        all.push_back({ca, path, key, "cert=" + words});
        all.push_back({ca, certificate, path, "key=" + words});
    }
    for (const auto& path : {files->file("empty"), files->file("words")}) {
        all.push_back({path, none, none, "ca=" + path + " cannot be used: it is not a certificate"});
        all.push_back({ca, path, key, "cert=" + path + " cannot be used: it is not a certificate"});
        all.push_back({ca, certificate, path, "key=" + path + " cannot be used: it is not a private"});
    }
    for (const auto& each : all) {
        auto how = trusting("ca");
        how.tls->ca_file = each.ca;
        how.tls->certificate_file = each.certificate;
        how.tls->key_file = each.key;
        const failure refused = outcome_of(at("127.0.0.1"), how);
        EXPECT_EQ(refused.code, errc::bad_configuration) << refused.detail;
        EXPECT_NE(refused.detail.find(each.words), std::string::npos)
            << refused.detail << "\nand not: " << each.words;
        EXPECT_EQ(refused.detail.find(" lib"), std::string::npos) << refused.detail;
    }
}

TEST_F(tls, a_certificate_that_the_server_does_not_trust_is_said_to_be_that) {
    const auto redis = start("server", "yes");
    auto how = trusting("ca");
    how.tls->certificate_file = files->file("stranger.crt");
    how.tls->key_file = files->file("stranger.key");
    const failure refused = outcome_of(at("127.0.0.1"), how);
    EXPECT_EQ(refused.code, errc::bad_configuration) << refused.detail;
    EXPECT_NE(refused.detail.find("does not trust the authority that issued our certificate"),
              std::string::npos)
        << refused.detail;
    EXPECT_EQ(refused.detail.find("alert"), std::string::npos) << refused.detail;
}

TEST_F(tls, a_certificate_that_is_not_valid_now_is_refused) {
    const auto redis = start("expired");
    const failure refused = outcome_of(at("127.0.0.1"), trusting("ca"));
    EXPECT_EQ(refused.code, errc::bad_configuration) << refused.detail;
    EXPECT_NE(refused.detail.find("not valid now: certificate has expired"), std::string::npos)
        << refused.detail;
}

TEST_F(tls, a_server_with_tls_is_found_out_by_those_who_speak_without) {
    for (const std::string clients : {"no", "yes"}) {
        const auto redis = start("server", clients);
        const failure refused = outcome_of(at("127.0.0.1"), {});
        EXPECT_EQ(refused.code, errc::bad_configuration) << refused.detail;
        EXPECT_NE(refused.detail.find("use rediss://"), std::string::npos) << refused.detail;
    }
}

TEST_F(tls, one_that_the_server_closed_while_idle_is_replaced_before_anything_is_sent) {
    const auto redis = start("server");
    connection tested{at("127.0.0.1"), trusting("ca"), {}, {}};
    connection other{at("127.0.0.1"), trusting("ca"), {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    const auto used_at = clock::now();
    ASSERT_EQ(ask(other, {"CLIENT", "KILL", "TYPE", "normal"}).replies.at(0).integer, 1);
    // A connection is trusted for a second after its last use; that has to be over.
    ASSERT_TRUE(eventually([&] { return clock::now() - used_at > 1100ms; }));
    EXPECT_EQ(ask(tested, {"PING"}).error.code, errc{});
}

TEST_F(tls, a_killed_server_ends_requests_at_once) {
    const auto redis = start("server");
    connection tested{at("127.0.0.1"), trusting("ca"), {}, {}};
    ASSERT_EQ(ask(tested, {"PING"}).error.code, errc{});
    redis->stop();
    auto waiting = std::async(std::launch::async, [&] { return ask(tested, {"PING"}); });
    EXPECT_TRUE(eventually([&] { return tested.commands_sent() == 2; }));
    const auto killed_at = clock::now();
    redis->kill();
    EXPECT_EQ(waiting.get().error.code, errc::outcome_unknown);
    EXPECT_LT(clock::now() - killed_at, patience / 2);
}

TEST_F(tls, a_subscriber_hears) {
    const auto redis = start("server");
    std::atomic<int> heard{0};
    subscriber tested{at("127.0.0.1"),
                      trusting("ca"),
                      {.heard = [&](const std::string&, std::string_view) { ++heard; },
                       .subscribed = {},
                       .moved_away = {}}};
    tested.subscribe("news", channel_style::classic);
    ASSERT_TRUE(eventually([&] { return tested.active("news"); }));
    connection other{at("127.0.0.1"), trusting("ca"), {}, {}};
    EXPECT_EQ(ask(other, {"PUBLISH", "news", "x"}).replies.at(0).integer, 1);
    EXPECT_TRUE(eventually([&] { return heard == 1; }));
}

}  // namespace

}  // namespace holdfast::engines::redis::test
