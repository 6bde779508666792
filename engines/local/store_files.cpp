#include <local/database.hpp>
#include <local/store_files.hpp>

#include <sys/stat.h>

namespace holdfast::engines::local {

namespace {

constexpr std::int64_t one_page = 512;  // SQLite's smallest
constexpr std::int64_t one_index_block = 32768;
constexpr const char* restart = "; stop every program that uses this store, then start them again";

}  // namespace

store_files::store_files(const std::string& directory)
    : parts_{{{directory + "/locks.db", one_page, {}},
              {directory + "/locks.db-wal", 0, {}},
              {directory + "/locks.db-shm", one_index_block, {}},
              {directory + "/wake", 0, {}}}} {}

std::optional<store_files::file_id> store_files::look_at(const part& file) noexcept {
    struct ::stat status {};
    if (::lstat(file.path.c_str(), &status) != 0 || status.st_size < file.smallest) {
        return std::nullopt;
    }
    return file_id{status.st_dev, status.st_ino};
}

std::uint64_t store_files::mixed(std::uint64_t mark, const file_id& id) noexcept {
    constexpr std::uint64_t prime = 0x9E3779B97F4A7C15ULL;
    for (const std::uint64_t number : {id.device, id.inode}) {
        mark = (mark ^ number) * prime;
        mark ^= mark >> 32;
    }
    return mark | 1;  // never 0
}

void store_files::remember() {
    std::uint64_t mark = 0;
    for (part& each : parts_) {
        const auto id = look_at(each);
        if (!id) {
            fail_moved(each);
        }
        each.id = *id;
        mark = mixed(mark, *id);
    }
    mark_ = mark;
}

std::uint64_t store_files::present_mark() const noexcept {
    std::uint64_t mark = 0;
    for (const part& each : parts_) {
        // A cut one that SQLite makes long again is empty, and looks like that of a new store.
        const auto id = look_at(each);
        if (!id) {
            return 0;
        }
        mark = mixed(mark, *id);
    }
    return mark;
}

const store_files::part* store_files::find_wrong() const noexcept {
    for (const part& each : parts_) {
        if (look_at(each) != each.id) {
            return &each;
        }
    }
    return nullptr;
}

void store_files::check() const {
    if (const part* wrong = find_wrong()) {
        fail_moved(*wrong);
    }
}

bool store_files::intact() const noexcept {
    return find_wrong() == nullptr;
}

void store_files::fail_moved(const part& wrong) {
    throw database_error{
        {errc::store_error, wrong.path + " was deleted, replaced or emptied while in use" + restart}};
}

void store_files::fail_others_differ() const {
    throw database_error{{errc::store_error,
                          "a file of the store was deleted, replaced or emptied while other programs "
                          "have it open, and we would not see their locks (" +
                              database() + ", -wal, -shm or wake)" + restart}};
}

}  // namespace holdfast::engines::local
