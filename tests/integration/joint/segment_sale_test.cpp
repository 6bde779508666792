#include <sstream>

#include "stores.hpp"

namespace holdfast::testing {

namespace {

using testing_support::server_process;

/// What a seller wrote.
struct report {
    std::uint64_t sold{};
    std::uint64_t refused{};
};

[[nodiscard]] report read_report(const std::filesystem::path& path) {
    std::istringstream text{testing_support::read_file(path)};
    report result;
    std::string word;
    text >> word >> result.sold >> word >> result.refused;
    EXPECT_TRUE(text) << text.str();
    return result;
}

TEST(segment_sale, of_500_units_in_5_segments_to_3000_buyers_in_two_processes_sells_500) {
    auto& server = shared_redis();
    server.cli({"FLUSHALL"});
    for (int index = 0; index < 5; ++index) {
        server.cli({"SET", "units:" + std::to_string(index), "100"});
    }
    const testing_support::temporary_directory files;
    const auto start = [&](const char* name) {
        return std::make_unique<server_process>(
            std::vector<std::string>{HOLDFAST_SEGMENT_SELLER, std::to_string(server.port()), "5",
                                     "1500", "16"},
            files.path() / name);
    };
    const auto one = start("one");
    const auto other = start("other");
    one->wait_for_end();
    other->wait_for_end();

    const auto first = read_report(files.path() / "one");
    const auto second = read_report(files.path() / "other");
    EXPECT_EQ(first.sold + second.sold, 500U);
    EXPECT_EQ(first.refused + second.refused, 2500U);
    for (int index = 0; index < 5; ++index) {
        EXPECT_EQ(server.cli({"GET", "units:" + std::to_string(index)}), "0");
    }
}

}  // namespace

}  // namespace holdfast::testing
