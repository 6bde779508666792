#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <holdfast/testing/engine_contract.hpp>

namespace {

/// A store in a temporary directory of its own for every test.
class local_store {
public:
    local_store() {
        auto pattern = (std::filesystem::temp_directory_path() / "holdfast-contract-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            throw std::runtime_error{"no temporary directory for the store"};
        }
        directory_ = pattern;
    }
    local_store(const local_store&) = delete;
    local_store& operator=(const local_store&) = delete;
    ~local_store() {
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
    }

    std::string address() const { return "local:" + (directory_ / "store").string(); }
    static constexpr std::chrono::milliseconds short_ttl{250};
    static constexpr std::chrono::milliseconds wake_bound{3000};

private:
    std::filesystem::path directory_;
};

}  // namespace

HOLDFAST_INSTANTIATE_ENGINE_CONTRACT(local, ::local_store);
