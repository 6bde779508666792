#include <contract/deployments.hpp>

#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/testing/forwarding_engine.hpp>

#include <contract/record_map.hpp>
#include <support/server_process.hpp>
#ifdef HOLDFAST_TEST_REDIS
#include <fstream>

#include <support/redis_servers.hpp>
#endif

namespace holdfast::testing {

namespace {

using namespace testing_support;

/// A store of its own for every test.
class in_memory : public deployment {
public:
    std::string address() override { return "memory:contract-" + std::to_string(++stores); }

private:
    static inline int stores{};
};

/// The least that an engine may be: it takes, renews and gives back, and has no ability. Grants ttls in
/// steps of 50 ms.
class bare_engine final : public forwarding_engine {
public:
    static constexpr std::chrono::milliseconds granularity{50};

    explicit bare_engine(std::unique_ptr<engine> inner)
        : forwarding_engine{std::move(inner)}, promises_{this->inner().promises()} {
        promises_.latches = false;
        promises_.notices_dead_holders = false;
        promises_.minimum_ttl = granularity;
        promises_.ttl_granularity = granularity;
    }

    [[nodiscard]] const engines::guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] engines::abilities offers() noexcept override { return {}; }
    void acquire(engines::acquire_request request, engines::call how,
                 engines::completion<engines::acquire_reply> done) override {
        request.ttl = granted(request.ttl);
        forwarding_engine::acquire(
            request, how, [done = std::move(done), ttl = request.ttl](engines::acquire_reply reply) {
                reply.ttl = ttl;
                done(std::move(reply));
            });
    }
    void renew(std::vector<engines::renew_request> batch, engines::call how,
               engines::completion<std::vector<engines::renew_reply>> done) override {
        std::vector<std::chrono::milliseconds> ttls;
        for (auto& one : batch) {
            one.ttl = granted(one.ttl);
            ttls.push_back(one.ttl);
        }
        forwarding_engine::renew(std::move(batch), how,
                                 [done = std::move(done),
                                  ttls = std::move(ttls)](std::vector<engines::renew_reply> replies) {
                                     for (std::size_t index = 0; index < replies.size(); ++index) {
                                         replies[index].ttl = ttls[index];
                                     }
                                     done(std::move(replies));
                                 });
    }

private:
    /// Down: a waiter then gets the lock a little sooner than the holder asked for, which the reply
    /// says.
    [[nodiscard]] static std::chrono::milliseconds granted(std::chrono::milliseconds asked_for) {
        return asked_for / granularity * granularity;
    }

    engines::guarantees promises_;
};

class bare : public in_memory {
public:
    bare() {
        engines::register_engine("bare",
                                 [](std::string_view rest, const engines::client_identity& identity) {
                                     return std::make_unique<bare_engine>(
                                         engines::open("memory:" + std::string{rest}, identity));
                                 });
    }
    std::string address() override {
        const auto memory = in_memory::address();
        return "bare:" + memory.substr(memory.find(':') + 1);
    }
};

/// One record for each name, in this process: the family of engines over the least of stores.
class records : public deployment {
public:
    records() : records{"records", {}} {}
    std::string address() override { return scheme_ + ":" + std::to_string(++stores_); }

protected:
    records(std::string scheme, std::chrono::milliseconds answer_delay) : scheme_{std::move(scheme)} {
        engines::register_engine(
            scheme_, [scheme = scheme_, answer_delay](std::string_view rest,
                                                      const engines::client_identity& identity) {
                static std::mutex mutex;
                static std::map<std::string, std::shared_ptr<shared_records>> stores;
                const auto address = scheme + ":" + std::string{rest};
                const std::lock_guard lock{mutex};
                auto& store = stores[address];
                if (!store) {
                    store = std::make_shared<shared_records>();
                }
                return engines::make_records_engine(
                    std::make_unique<record_map>(address, store, answer_delay), identity);
            });
    }

private:
    const std::string scheme_;
    int stores_{};
};

/// What the engine knows of the store's clock is older here.
class late_records final : public records {
public:
    late_records() : records{"late-records", std::chrono::milliseconds{5}} {}
};

/// Likewise.
class on_disk : public deployment {
public:
    std::string address() override {
        return "local:" + (files_.path() / ("store-" + std::to_string(++stores_))).string();
    }

private:
    temporary_directory files_;
    int stores_{};
};

#ifdef HOLDFAST_TEST_REDIS

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

/// For a quorum of them, whose address would be long with all nodes.
class cluster_named_by_one_node : public deployment {
public:
    std::string address() override { return "redis+cluster://" + at(servers_.ports().front()); }

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

#endif

/// Members get more time than the default: the suite's ttls are short, and its machine may be busy.
template <class Member, int Count>
class quorum_of : public deployment {
public:
    std::string address() override {
        std::string text = "quorum:?member_timeout=5s";
        for (auto& each : members_) {
            text += " " + each.address();
        }
        return text;
    }

private:
    std::array<Member, Count> members_;
};

template <class Deployment>
std::unique_ptr<deployment> make() {
    return std::make_unique<Deployment>();
}

using maker = std::function<std::unique_ptr<deployment>()>;

const std::map<std::string, maker>& known_stores() {
    static const std::map<std::string, maker> stores{
        {"memory", make<in_memory>},
        {"bare", make<bare>},
        {"records", make<records>},
        {"records_late", make<late_records>},
        {"local", make<on_disk>},
        {"quorum_memory", make<quorum_of<in_memory, 3>>},
#ifdef HOLDFAST_TEST_REDIS
        {"redis_standalone", make<standalone>},
        {"redis_replicated", make<replicated>},
        {"redis_sentinel", make<guarded_by_sentinels>},
        {"redis_cluster", make<cluster>},
        {"redis_encrypted", make<encrypted>},
        {"quorum_redis3", make<quorum_of<standalone, 3>>},
        {"quorum_redis5", make<quorum_of<standalone, 5>>},
        {"quorum_sentinels", make<quorum_of<guarded_by_sentinels, 3>>},
        {"quorum_clusters", make<quorum_of<cluster_named_by_one_node, 3>>},
#endif
    };
    return stores;
}

}  // namespace

deployment& deployed() {
    static const std::unique_ptr<deployment> instance = [] {
        const auto* const chosen = std::getenv("HOLDFAST_TEST_STORE");
        const std::string store{chosen == nullptr ? "memory" : chosen};
        const auto found = known_stores().find(store);
        if (found == known_stores().end()) {
            throw std::runtime_error{"HOLDFAST_TEST_STORE is " + store + ", which is not known"};
        }
        return found->second();
    }();
    return *instance;
}

}  // namespace holdfast::testing
