// SPDX-License-Identifier: Apache-2.0
// Who may write a session, and how each kind of opener gets at it.
#include "core/store/session_file.h"
#include "core/store/session_reader.h"
#include "core/store/session_schema.h"
#include "core/store/session_state.h"
#include "core/store/session_writer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

namespace shardlens {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// How long a second opener waits for the first to have finished opening or closing.
constexpr auto kOpenPatience = 1s;
constexpr auto kOpenPause = 20ms;

/// The lock of a file that is to be made or replaced. @throws StoreError if it cannot be had
SessionLock lockForMaking(const fs::path& file) {
    SessionLock::Attempt attempt = SessionLock::tryExclusive(file);
    if (auto* lock = std::get_if<SessionLock>(&attempt)) return std::move(*lock);
    if (const auto* holder = std::get_if<SessionLock::Holder>(&attempt))
        throw StoreError(
            fmt::format("the session is open in another window ({})", holder->toString()),
            file.string(), "close it there or choose another name");
    throw StoreError(fmt::format("the session cannot be made: {}",
                                 std::get<SessionLock::Impossible>(attempt).reason),
                     file.string(), "choose a folder you may write");
}

SqliteDatabase openForWriting(const fs::path& file, const SessionLimits& limits) {
    SqliteDatabase database = SqliteDatabase::open(file, SqliteDatabase::Access::ReadWrite);
    database.prepareForWriting();
    migrate(database, sessionMigrations());
    database.limitSize(limits.maxBytes);
    return database;
}

void makePrivateFolder(const fs::path& folder) {
    std::error_code error;
    if (fs::create_directories(folder, error)) fs::permissions(folder, fs::perms::owner_all, error);
    if (error)
        throw StoreError(
            fmt::format("the folder for unsaved sessions cannot be made ({})", error.message()),
            folder.string(), "set XDG_STATE_HOME to a folder you may write");
}

} // namespace

Session::Session(std::unique_ptr<State> state) : m_state(std::move(state)) {
}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::openWritten(SessionLock lock, const fs::path& file, const SessionLimits& limits) {
    SqliteDatabase database = openForWriting(file, limits);
    SessionContent content = readContent(database);
    return Session(std::make_unique<State>(
        State{std::move(lock), std::move(database), file, limits, {}, std::move(content)}));
}

Session Session::openCopy(SqliteDatabase copy, const fs::path& file, const SessionLimits& limits,
                          std::string reason) {
    SessionContent content = readContent(copy);
    return Session(std::make_unique<State>(
        State{std::nullopt, std::move(copy), file, limits, std::move(reason), std::move(content)}));
}

Session Session::create(const fs::path& path, const NewSession& content,
                        const SessionLimits& limits) {
    const fs::path file = newSessionFile(path);
    SessionLock lock = lockForMaking(file);
    if (fs::exists(file))
        throw StoreError("there is a file of that name already", path.string(),
                         "choose another name");
    publishSessionFile(
        file, [&content](const SqliteDatabase& database) { writeNewSession(database, content); });
    return openWritten(std::move(lock), file, limits);
}

Session Session::createTemporary(const fs::path& folder, const NewSession& content,
                                 const SessionLimits& limits) {
    makePrivateFolder(folder);
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const std::string stem = fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::gmtime(now), getpid());
    // No name twice in a process: the file of one that is closing may still be locked.
    static std::atomic<int> number = 0;
    for (;;) {
        const fs::path file = folder / fmt::format("{}-{}.shardlens", stem, ++number);
        if (!fs::exists(file)) return create(file, content, limits);
    }
}

Session Session::open(const fs::path& path, OpenMode mode, const SessionLimits& limits) {
    const fs::path file = existingSessionFile(path);
    const auto deadline = std::chrono::steady_clock::now() + kOpenPatience;
    for (;;) {
        try {
            return mode == OpenMode::ReadWrite
                       ? openWritable(file, limits)
                       : openReadable(file, limits, "it was opened for reading only");
        } catch (const SqliteError& error) {
            if (!error.unavailable() || std::chrono::steady_clock::now() >= deadline) throw;
        }
        std::this_thread::sleep_for(kOpenPause);
    }
}

Session Session::openWritable(const fs::path& file, const SessionLimits& limits) {
    SessionLock::Attempt attempt = SessionLock::tryExclusive(file);
    if (auto* holder = std::get_if<SessionLock::Holder>(&attempt))
        return openBeside(*holder, file, limits);
    if (auto* impossible = std::get_if<SessionLock::Impossible>(&attempt))
        return openReadable(file, limits, impossible->reason);
    auto& lock = std::get<SessionLock>(attempt);
    if (std::string obstacle = obstacleToWriting(file); !obstacle.empty())
        return openCopy(readSessionFile(file, limits.maxBytes), file, limits, std::move(obstacle));
    examineSessionFile(file, limits.maxBytes);
    return openWritten(std::move(lock), file, limits);
}

Session Session::openReadable(const fs::path& file, const SessionLimits& limits,
                              std::string reason) {
    const SessionLock::Attempt attempt = SessionLock::tryShared(file);
    if (const auto* holder = std::get_if<SessionLock::Holder>(&attempt))
        return openBeside(*holder, file, limits);
    return openCopy(readSessionFile(file, limits.maxBytes), file, limits, std::move(reason));
}

Session Session::openBeside(const SessionLock::Holder& holder, const fs::path& file,
                            const SessionLimits& limits) {
    if (!holder.onThisHost())
        throw StoreError(
            fmt::format("the session is open on another computer ({})", holder.toString()),
            file.string(), "close it there, or work on a copy of the file");
    return openCopy(readLiveSessionFile(file), file, limits,
                    fmt::format("it is open in another window ({})", holder.toString()));
}

Session Session::saveAs(const fs::path& path) const {
    const fs::path file = newSessionFile(path);
    if (file == m_state->file && m_state->lock)
        throw StoreError("this is the session's own file", path.string(),
                         "every step is in it already; choose another name for a copy");
    SessionLock lock = lockForMaking(file);
    publishSessionFile(
        file, [this](const SqliteDatabase& database) { m_state->database.copyTo(database); });
    return openWritten(std::move(lock), file, m_state->limits);
}

void Session::discard(Session session) {
    const std::unique_ptr<State> state = std::move(session.m_state);
    if (!state->lock || state->database.hasMoved()) return;
    const SessionLock lock = std::move(*state->lock);
    const fs::path file = state->file;
    { const SqliteDatabase closing = std::move(state->database); }
    removeSessionFile(file);
}

} // namespace shardlens
