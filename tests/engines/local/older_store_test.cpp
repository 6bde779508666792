// A store may come to an older state: its journal is deleted or cut, or a copy is put in place. Its
// tokens go on rising all the same.
#include <optional>

#include "support.hpp"

namespace holdfast::engines::test {

namespace {

/// What makes a store older. `path` is its directory.
struct step_back {
    const char* name;
    void (*apply)(const std::string& path);
};

void PrintTo(const step_back& each, std::ostream* out) {
    *out << each.name;
}

void remove_parts(const std::string& path, std::initializer_list<const char*> parts) {
    for (const char* part : parts) {
        std::filesystem::remove(path + "/" + part);
    }
}

const auto steps_back = testing::Values(
    step_back{"log_deleted", [](const std::string& path) { remove_parts(path, {"locks.db-wal"}); }},
    step_back{"log_and_index_deleted",
              [](const std::string& path) {
                  remove_parts(path, {"locks.db-wal", "locks.db-shm"});
              }},
    step_back{"log_index_and_wake_deleted",
              [](const std::string& path) {
                  remove_parts(path, {"locks.db-wal", "locks.db-shm", "wake"});
              }},
    step_back{"database_deleted", [](const std::string& path) { remove_parts(path, {"locks.db"}); }},
    step_back{"all_deleted",
              [](const std::string& path) {
                  remove_parts(path, {"locks.db", "locks.db-wal", "locks.db-shm", "wake"});
              }},
    step_back{"log_emptied",
              [](const std::string& path) { std::filesystem::resize_file(path + "/locks.db-wal", 0); }},
    step_back{
        "log_cut",
        [](const std::string& path) { std::filesystem::resize_file(path + "/locks.db-wal", 4120); }},
    step_back{"copy_put_in_place", [](const std::string& path) {
                  remove_parts(path, {"locks.db-wal", "locks.db-shm"});
                  std::filesystem::copy_file(path + "/locks.db", path + "/copy");
                  std::filesystem::rename(path + "/copy", path + "/locks.db");
              }});

class older_store : public testing::TestWithParam<step_back> {
protected:
    /// The token of one more grant. Nothing if the store refuses us.
    [[nodiscard]] std::optional<std::uint64_t> grant() {
        try {
            const auto store = open_local(base_.path(), who_);
            const auto reply = acquire(*store, exclusive("stock", owner_of(who_, ++sequence_)));
            static_cast<void>(release(*store, {.name = "stock", .owner = owner_of(who_, sequence_)}));
            return reply.result == granted ? std::optional{reply.first_token.value} : std::nullopt;
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::store_error) << error.what();
            return std::nullopt;
        }
    }
    /// Has the store open, so that no other client empties the journal at its end.
    [[nodiscard]] other_process keeper() const {
        return other_process{[path = base_.path()](const other_process::line& talk) {
            const auto store = open_local(path, identity("keeper"));
            talk.say('+');
            static_cast<void>(talk.hear());
        }};
    }

    const temporary_directory base_;
    const client_identity who_ = identity();
    std::int64_t sequence_{};
};

TEST_P(older_store, that_nobody_had_open_grants_larger_tokens) {
    ASSERT_TRUE(grant());
    std::optional<std::uint64_t> last;
    {
        const other_process killed = keeper();
        ASSERT_EQ(killed.talk().hear(), '+');
        for (int grants = 0; grants < 5; ++grants) {
            last = grant();
        }
    }
    GetParam().apply(base_.path());
    const auto next = grant();
    ASSERT_TRUE(last && next);
    EXPECT_GT(*next, *last);
}

TEST_P(older_store, that_was_in_use_grants_larger_tokens) {
    ASSERT_TRUE(grant());
    std::optional<std::uint64_t> last;
    {
        const other_process user = keeper();
        ASSERT_EQ(user.talk().hear(), '+');
        for (int grants = 0; grants < 5; ++grants) {
            last = grant();
        }
        GetParam().apply(base_.path());
        if (const auto at_once = grant()) {
            EXPECT_GT(*at_once, *last);
            last = at_once;
        }
        user.talk().say('.');
    }
    const auto next = grant();
    ASSERT_TRUE(last && next);
    EXPECT_GT(*next, *last);
}

INSTANTIATE_TEST_SUITE_P(by, older_store, steps_back,
                         [](const auto& one) { return std::string{one.param.name}; });

}  // namespace

}  // namespace holdfast::engines::test
