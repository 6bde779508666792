#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <holdfast/testing/engine_contract.hpp>
#include <support/redis_servers.hpp>

/// One run of this program for each topology, chosen by HOLDFAST_TEST_TOPOLOGY: what is compiled is the
/// same, and a cluster that takes seconds to start serves all tests of its run.
namespace {

using namespace holdfast::testing_support;

std::string at(std::uint16_t port) {
    return "127.0.0.1:" + std::to_string(port);
}

std::string joined(const std::vector<std::uint16_t>& ports) {
    std::string text;
    for (const auto port : ports) {
        text += (text.empty() ? "" : ",") + at(port);
    }
    return text;
}

/// Keeps its servers, and says where they are.
class deployment {
public:
    virtual ~deployment() = default;
    [[nodiscard]] virtual std::string address() = 0;
};

class standalone : public deployment {
public:
    std::string address() override { return "redis://" + at(server_.port()); }

private:
    redis_server server_;
};

class replicated : public deployment {
public:
    std::string address() override { return "redis://" + at(servers_.master().port()); }

private:
    redis_replicas servers_{2};
};

class guarded_by_sentinels : public deployment {
public:
    std::string address() override {
        return "redis+sentinel://" + joined(servers_.sentinel_ports()) + "/" +
               redis_sentinels::service();
    }

private:
    redis_sentinels servers_;
};

class cluster : public deployment {
public:
    std::string address() override { return "redis+cluster://" + joined(servers_.ports()); }

private:
    redis_cluster servers_;
};

/// The line that docs/redis.md tells operators to use.
std::string documented_acl() {
    std::ifstream page{HOLDFAST_SOURCE_DIR "/docs/redis.md"};
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("user locker ")) {
            return line;
        }
    }
    throw std::runtime_error{"docs/redis.md has no ACL line"};
}

class encrypted : public deployment {
public:
    std::string address() override {
        return "rediss://locker:secret@localhost:" + std::to_string(server_.port()) +
               "?ca=" + test_certificates().ca.string();
    }

private:
    redis_server server_{
        {.acl = "user default off\n" + documented_acl(), .tls = tls_use::server_certificate}};
};

deployment& deployed() {
    static const std::unique_ptr<deployment> instance = []() -> std::unique_ptr<deployment> {
        const auto* const chosen = std::getenv("HOLDFAST_TEST_TOPOLOGY");
        const std::string topology{chosen == nullptr ? "standalone" : chosen};
        const std::map<std::string, std::function<std::unique_ptr<deployment>()>> known{
            {"standalone", [] { return std::make_unique<standalone>(); }},
            {"replicated", [] { return std::make_unique<replicated>(); }},
            {"sentinel", [] { return std::make_unique<guarded_by_sentinels>(); }},
            {"cluster", [] { return std::make_unique<cluster>(); }},
            {"encrypted", [] { return std::make_unique<encrypted>(); }},
        };
        const auto found = known.find(topology);
        if (found == known.end()) {
            throw std::runtime_error{"HOLDFAST_TEST_TOPOLOGY is " + topology + ", which is not known"};
        }
        return found->second();
    }();
    return *instance;
}

class redis_store {
public:
    std::string address() const { return deployed().address(); }
    static constexpr std::chrono::milliseconds short_ttl{250};
    static constexpr std::chrono::milliseconds wake_bound{3000};
};

}  // namespace

HOLDFAST_INSTANTIATE_ENGINE_CONTRACT(redis, ::redis_store);
