// SPDX-License-Identifier: Apache-2.0
// One writer a session, across processes and windows. The lock is an flock() on a file beside the
// session (`x.shardlens.lock`), which the kernel drops when its holder dies, however it dies; the
// text in that file only says who holds it. A side file, because a descriptor of our own on the
// session itself would, when closed, drop the POSIX locks SQLite holds on it in this process
// (https://www.sqlite.org/howtocorrupt.html, section 2.2).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>

namespace shardlens {

class SessionLock {
public:
    struct Holder {
        long process = 0;
        std::string host;
        std::string since; ///< UTC, ISO 8601

        bool onThisHost() const;
        std::string toString() const; ///< "process 4242 on host atlas since 2024-05-01T10:00:00Z"
    };
    /// The lock cannot be had because the lock file cannot be made; @see reason.
    struct Impossible {
        std::string reason;
    };
    using Attempt = std::variant<SessionLock, Holder, Impossible>;

    /// For the one who writes. Waits up to half a second for readers that are about to finish.
    static Attempt tryExclusive(const std::filesystem::path& session);
    /// For the moment it takes to read a session that nobody writes.
    static Attempt tryShared(const std::filesystem::path& session);

    static std::filesystem::path fileFor(const std::filesystem::path& session);

    SessionLock(SessionLock&& other) noexcept;
    SessionLock& operator=(SessionLock&& other) noexcept;
    ~SessionLock(); ///< releases; the lock file goes too

private:
    SessionLock(std::filesystem::path file, int descriptor);
    static Attempt attempt(const std::filesystem::path& session, int operation);
    void signIn() const;

    std::filesystem::path m_file;
    int m_descriptor = -1;
};

} // namespace shardlens
