// SPDX-License-Identifier: Apache-2.0
// A session nobody writes is read with SQLite's `immutable` flag, which takes no locks and makes no
// files. That flag does not see a write-ahead log that a killed process left; then the file and
// its log are copied to a private folder and read there, because reading them in place would start
// recovery, and the examination must not change a byte. Files are looked at directly only while the
// session's lock is held, hence never while this process has them open through SQLite.
#include "core/store/session_file.h"

#include "core/store/session_schema.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>

namespace shardlens {

namespace {

namespace fs = std::filesystem;

// The head of a database, https://www.sqlite.org/fileformat2.html section 1.3.
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kHeadBytes = 100;

fs::path beside(const fs::path& file, std::string_view suffix) {
    fs::path path = file;
    path += suffix;
    return path;
}

/// Bytes 16 and 17 of the head, big-endian; 1 stands for 65536.
std::uint64_t pageSize(std::string_view head) {
    const auto high = static_cast<unsigned char>(head[16]);
    const auto low = static_cast<unsigned char>(head[17]);
    const std::uint64_t size = std::uint64_t{high} << 8 | low;
    return size == 1 ? 65536 : size;
}

/// A folder only we can enter, gone with its content when the scope ends.
class PrivateFolder {
public:
    PrivateFolder() {
        std::string name = (fs::temp_directory_path() / "shardlens-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr)
            throw StoreError(fmt::format("no temporary folder can be made ({})",
                                         std::generic_category().message(errno)),
                             name, "free space there, or set TMPDIR to another folder");
        m_path = name;
    }
    ~PrivateFolder() {
        std::error_code ignored;
        fs::remove_all(m_path, ignored);
    }
    PrivateFolder(const PrivateFolder&) = delete;
    PrivateFolder& operator=(const PrivateFolder&) = delete;

    const fs::path& path() const { return m_path; }

private:
    fs::path m_path;
};

/// Size of a file; 0 if there is none.
std::uint64_t sizeOf(const fs::path& file) {
    std::error_code error;
    const std::uint64_t size = fs::file_size(file, error);
    return error ? 0 : size;
}

[[noreturn]] void refuse(const fs::path& file, std::string problem) {
    throw StoreError(std::move(problem), file.string(),
                     "choose a session (*.shardlens) or a model file");
}

/// The cheap reasons to refuse, in clearer words than SQLite's.
void checkShape(const fs::path& file, std::uint64_t maxBytes) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream)
        throw StoreError("the session cannot be read", file.string(), "check its permissions");
    std::array<char, kHeadBytes> head{};
    stream.read(head.data(), head.size());
    const std::string_view seen(head.data(), static_cast<std::size_t>(stream.gcount()));
    if (seen.empty()) refuse(file, "the file is empty, not a Shardlens session");
    if (seen.substr(0, kMagic.size()) != kMagic.substr(0, seen.size()))
        refuse(file, "the file is not a Shardlens session");

    const std::uint64_t size = sizeOf(file), log = sizeOf(beside(file, "-wal"));
    if (size + log > maxBytes)
        refuse(file, fmt::format("the session is too large ({} bytes, at most {} are read)",
                                 size + log, maxBytes));
    // SQLite takes a last page that is cut short for one that ends in zeros.
    const bool whole = seen.size() == kHeadBytes;
    const std::uint64_t page = whole ? pageSize(seen) : 0;
    if (!whole || (log == 0 && page != 0 && size % page != 0))
        throw StoreError(fmt::format("the session is damaged (cut off after {} bytes)", size),
                         file.string(), "go back to a copy of it; the file was not changed");
}

/// Calls `use` with a connection through which reading changes nothing.
template <typename Use>
auto withQuietConnection(const fs::path& file, std::uint64_t maxBytes, Use use) {
    checkShape(file, maxBytes);
    if (sizeOf(beside(file, "-wal")) == 0)
        return use(SqliteDatabase::open(file, SqliteDatabase::Access::Immutable));
    const PrivateFolder folder;
    const fs::path copy = folder.path() / "copy";
    try {
        fs::copy_file(file, copy);
        fs::copy_file(beside(file, "-wal"), beside(copy, "-wal"));
    } catch (const fs::filesystem_error& error) {
        throw StoreError(fmt::format("the session cannot be copied ({})", error.code().message()),
                         file.string(), "check its permissions and the room in TMPDIR");
    }
    return use(SqliteDatabase::open(copy, SqliteDatabase::Access::ReadWrite, file.string()));
}

SqliteDatabase examinedCopy(const SqliteDatabase& source) {
    examineSession(source);
    SqliteDatabase memory = SqliteDatabase::inMemory(source.where());
    source.copyTo(memory);
    migrate(memory, sessionMigrations());
    return memory;
}

void syncFolder(const fs::path& folder) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return; // a folder we may write but not read
    fsync(descriptor);
    close(descriptor);
}

/// A log beside another database would be taken for that one's: it must not outlive its own.
void removeSideFiles(const fs::path& file) {
    for (const std::string_view suffix : {"-wal", "-shm", "-journal"})
        fs::remove(beside(file, suffix));
}

} // namespace

fs::path existingSessionFile(const fs::path& path) {
    std::error_code error;
    fs::path file = fs::canonical(path, error);
    if (error)
        throw StoreError(fmt::format("the session cannot be opened ({})", error.message()),
                         path.string(), "check the path");
    if (!fs::is_regular_file(file, error))
        throw StoreError("this is not a file", path.string(), "choose a session (*.shardlens)");
    return file;
}

fs::path newSessionFile(const fs::path& path) {
    std::error_code error;
    if (fs::exists(path, error)) return existingSessionFile(path);
    const fs::path folder = fs::canonical(fs::absolute(path).parent_path(), error);
    if (error || !fs::is_directory(folder) || !path.has_filename())
        throw StoreError("there is no such folder", path.string(), "choose an existing folder");
    return folder / path.filename();
}

std::string obstacleToWriting(const fs::path& file) {
    const auto because = [](std::string_view what) {
        return fmt::format("{} ({})", what, std::generic_category().message(errno));
    };
    if (faccessat(AT_FDCWD, file.parent_path().c_str(), W_OK | X_OK, AT_EACCESS) != 0)
        return because("its folder cannot be written");
    if (faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) != 0)
        return because("the file cannot be written");
    return {};
}

void examineSessionFile(const fs::path& file, std::uint64_t maxBytes) {
    withQuietConnection(file, maxBytes, examineSession);
}

SqliteDatabase readSessionFile(const fs::path& file, std::uint64_t maxBytes) {
    return withQuietConnection(file, maxBytes, examinedCopy);
}

SqliteDatabase readLiveSessionFile(const fs::path& file) {
    return examinedCopy(SqliteDatabase::open(file, SqliteDatabase::Access::ReadOnly));
}

void publishSessionFile(const fs::path& file,
                        const std::function<void(const SqliteDatabase&)>& fill) {
    const fs::path fresh = beside(file, ".new");
    const auto clear = [&fresh] {
        std::error_code ignored;
        fs::remove(fresh, ignored);
        removeSideFiles(fresh);
    };
    try {
        clear(); // what a process left that was killed in here
        {
            const SqliteDatabase database =
                SqliteDatabase::open(fresh, SqliteDatabase::Access::Create, file.string());
            fill(database);
            database.prepareForWriting(); // the file says that it keeps a write-ahead log
            database.checkpoint();
        }
        removeSideFiles(file);
        fs::rename(fresh, file);
    } catch (const fs::filesystem_error& error) {
        clear();
        throw StoreError(
            fmt::format("the session cannot be put in place ({})", error.code().message()),
            file.string(), "save under another name");
    } catch (...) {
        clear();
        throw;
    }
    syncFolder(file.parent_path());
}

void removeSessionFile(const fs::path& file) {
    try {
        removeSideFiles(file);
        fs::remove(file);
    } catch (const fs::filesystem_error& error) {
        throw StoreError(fmt::format("the session cannot be deleted ({})", error.code().message()),
                         file.string(), "check the permissions of its folder");
    }
}

} // namespace shardlens
