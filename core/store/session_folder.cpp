// SPDX-License-Identifier: Apache-2.0
// A window that ends in order deletes or renames its unsaved session; so a file that nobody holds
// was left by one that did not.
#include "core/store/session_folder.h"

#include "core/error.h"
#include "core/store/session.h"
#include "core/store/session_lock.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <tuple>
#include <variant>

namespace shardlens {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".shardlens";

fs::path folderFrom(const char* variable) {
    const char* value = std::getenv(variable);
    const fs::path path = value == nullptr ? "" : value;
    return path.is_absolute() ? path : fs::path(); // the specification ignores relative ones
}

std::int64_t modifiedSeconds(const fs::path& file) {
    std::error_code error;
    const auto time = std::chrono::file_clock::to_sys(fs::last_write_time(file, error));
    if (error) return 0;
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

/// A write-ahead log is where the last steps are.
std::int64_t lastWritten(const fs::path& session) {
    fs::path log = session;
    log += "-wal";
    return std::max(modifiedSeconds(session), modifiedSeconds(log));
}

RecoverableSession describe(const fs::path& file) {
    RecoverableSession found;
    found.path = file;
    found.modified = lastWritten(file);
    try {
        const Session session = Session::open(file, OpenMode::ReadOnly);
        found.model = session.content().model.path;
        found.steps = session.content().done;
    } catch (const StoreError& error) {
        found.problem = error.what();
    }
    return found;
}

/// Removes `x.shardlens.new` and `x.shardlens.lock` where there is no `x.shardlens`.
void sweep(const fs::path& file) {
    if (!file.stem().string().ends_with(kSuffix)) return;
    const fs::path session = file.parent_path() / file.stem();
    const SessionLock::Attempt attempt = SessionLock::tryExclusive(session);
    std::error_code ignored;
    if (!std::holds_alternative<SessionLock>(attempt) || fs::exists(session, ignored)) return;
    for (const std::string_view suffix : {".new", ".new-journal", ".new-wal", ".new-shm"}) {
        fs::path remains = session;
        fs::remove(remains += suffix, ignored);
    }
}

} // namespace

fs::path unsavedSessionsFolder() {
    fs::path state = folderFrom("XDG_STATE_HOME");
    if (state.empty()) {
        const fs::path home = folderFrom("HOME");
        if (home.empty())
            throw StoreError("there is no home folder for unsaved sessions", "HOME",
                             "set HOME or XDG_STATE_HOME to a folder you may write");
        state = home / ".local" / "state";
    }
    return state / "shardlens" / "sessions";
}

std::vector<RecoverableSession> recoverableSessions(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        files.push_back(it->path());

    std::vector<RecoverableSession> sessions;
    for (const fs::path& file : files) {
        if (file.extension() == ".new" || file.extension() == ".lock") sweep(file);
        if (file.extension() != kSuffix) continue;
        const SessionLock::Attempt attempt = SessionLock::tryShared(file);
        if (!std::holds_alternative<SessionLock::Holder>(attempt))
            sessions.push_back(describe(file));
    }
    std::ranges::sort(sessions, [](const RecoverableSession& a, const RecoverableSession& b) {
        return std::tie(b.modified, a.path) < std::tie(a.modified, b.path);
    });
    return sessions;
}

} // namespace shardlens
