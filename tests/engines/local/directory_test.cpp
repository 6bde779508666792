#include <local/directory.hpp>

#include <fstream>

#include "support.hpp"

#include <sys/stat.h>

namespace holdfast::engines::test {

namespace {

using local::directory_of;
using local::prepare_directory;
using local::shared_filesystem;

failure refusal_of_directory(const std::string& path) {
    return refusal_of([&] { return prepare_directory(path); });
}

TEST(local_directory, the_default_is_in_the_state_directory_of_the_user) {
    ::setenv("XDG_STATE_HOME", "/state", 1);
    EXPECT_EQ(directory_of(""), "/state/holdfast");
    ::setenv("XDG_STATE_HOME", "relative/is/ignored", 1);
    ::setenv("HOME", "/home/alice", 1);
    EXPECT_EQ(directory_of(""), "/home/alice/.local/state/holdfast");
    ::unsetenv("XDG_STATE_HOME");
    ::unsetenv("HOME");
    EXPECT_EQ(refusal_of([] { return directory_of(""); }).code, errc::bad_configuration);
}

TEST(local_directory, a_relative_path_is_refused_with_the_whole_one) {
    const auto here = std::filesystem::current_path().string();
    const auto advice = [](const std::string& path) {
        const failure refused = refusal_of([&] { return directory_of(path); });
        EXPECT_EQ(refused.code, errc::bad_configuration);
        return refused.detail;
    };
    EXPECT_NE(advice("here").find("local:" + here + "/here"), std::string::npos);
    EXPECT_NE(advice("./here").find("local:" + here), std::string::npos);
    ::setenv("HOME", "/home/alice", 1);
    EXPECT_NE(advice("~/locks").find("local:/home/alice/locks"), std::string::npos);
}

TEST(local_directory, nothing_in_a_path_is_expanded) {
    EXPECT_EQ(directory_of("/~/$HOME//"), "/~/$HOME");
}

TEST(local_directory, missing_directories_are_created_for_us_alone) {
    const temporary_directory base;
    const std::string path = prepare_directory(base.path() + "/a/b");
    struct ::stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST(local_directory, a_directory_that_others_may_write_to_is_refused_with_another_to_use) {
    ::setenv("HOME", "/home/alice", 1);
    const temporary_directory base;
    for (const mode_t mode : {0770U, 0702U, 0777U}) {
        ::chmod(base.path().c_str(), mode);
        const failure refused = refusal_of_directory(base.path());
        EXPECT_EQ(refused.code, errc::bad_configuration);
        EXPECT_EQ(refused.detail.find("chmod"), std::string::npos);
        EXPECT_NE(refused.detail.find("local: alone means local:/home/alice"), std::string::npos);
    }
    ::chmod(base.path().c_str(), 01777);  // as /tmp
    const auto advised = base.path() + "/holdfast-" + local::user_name();
    EXPECT_NE(refusal_of_directory(base.path()).detail.find("local:" + advised), std::string::npos);
    EXPECT_EQ(prepare_directory(advised), advised);
}

TEST(local_directory, a_directory_inside_one_that_everybody_may_write_to_is_refused) {
    const temporary_directory base;
    static_cast<void>(prepare_directory(base.path() + "/open/mine"));
    ::chmod((base.path() + "/open").c_str(), 0777);
    EXPECT_EQ(refusal_of_directory(base.path() + "/open/mine").code, errc::bad_configuration);
}

TEST(local_directory, a_directory_of_another_user_is_refused) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can give a directory away";
    }
    const temporary_directory base;
    ASSERT_EQ(::chown(base.path().c_str(), 12345, 12345), 0);
    const failure refused = refusal_of_directory(base.path());
    EXPECT_EQ(refused.code, errc::bad_configuration);
    EXPECT_NE(refused.detail.find("12345"), std::string::npos);
}

TEST(local_directory, a_directory_we_may_not_write_to_is_refused) {
    const temporary_directory base;
    // Root may write everywhere: another user has to ask.
    other_process asker{[&](const other_process::line& line) {
        static_cast<void>(::geteuid() == 0 && ::chown(base.path().c_str(), 12345, 12345) == 0 &&
                          ::setuid(12345) == 0);
        ::chmod(base.path().c_str(), 0500);
        line.say(refusal_of_directory(base.path()).code == errc::unauthorised ? 'y' : 'n');
        line.say(refusal_of_directory(base.path() + "/sub").code == errc::unauthorised ? 'y' : 'n');
        ::chmod(base.path().c_str(), 0700);
    }};
    EXPECT_EQ(asker.talk().hear(), 'y');
    EXPECT_EQ(asker.talk().hear(), 'y');
}

TEST(local_directory, a_path_that_is_too_long_is_refused_and_not_repeated) {
    const std::string endless(std::size_t{10} << 20, 'a');
    for (const std::string& path : {"/" + endless, endless, "/tmp/" + endless}) {
        const failure refused = refusal_of([&] { return local::directory_of(path); });
        EXPECT_EQ(refused.code, errc::bad_configuration);
        EXPECT_LT(refused.detail.size(), 300U);
        EXPECT_NE(refused.detail.find(std::to_string(path.size()) + " bytes"), std::string::npos);
    }
}

TEST(local_directory, a_file_and_a_symbolic_link_are_refused) {
    const temporary_directory base;
    std::ofstream{base.path() + "/file"} << "x";
    std::filesystem::create_directory(base.path() + "/real");
    std::filesystem::create_symlink(base.path() + "/real", base.path() + "/link");
    EXPECT_EQ(refusal_of_directory(base.path() + "/file").code, errc::bad_configuration);
    EXPECT_EQ(refusal_of_directory(base.path() + "/file/below").code, errc::bad_configuration);
    EXPECT_EQ(refusal_of_directory(directory_of(base.path() + "/link/")).code, errc::bad_configuration);
}

TEST(local_directory, filesystems_that_other_hosts_may_share_are_known) {
    EXPECT_EQ(shared_filesystem(0x6969), "nfs");
    EXPECT_EQ(shared_filesystem(0xFE534D42), "smb2");
    EXPECT_EQ(shared_filesystem(0xFF534D42), "cifs");
    EXPECT_EQ(shared_filesystem(0x65735546), "fuse or virtiofs");
    EXPECT_EQ(shared_filesystem(0x01021997), "9p");
    EXPECT_EQ(shared_filesystem(0x00C36400), "ceph");
}

TEST(local_directory, filesystems_of_one_host_are_accepted) {
    for (const std::uint64_t type :
         {0xEF53U, 0x58465342U, 0x9123683EU, 0x01021994U, 0x2FC12FC1U, 0x794C7630U}) {
        EXPECT_FALSE(shared_filesystem(type)) << type;
    }
}

}  // namespace

}  // namespace holdfast::engines::test
