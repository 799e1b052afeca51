// SPDX-License-Identifier: Apache-2.0
// flock() on a side file that is removed on release. Since it is removed, whoever gets the lock
// checks that the name still leads to the file it locked, and tries again if not.
#include "core/store/session_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace shardlens {

namespace {

using namespace std::chrono_literals;
constexpr auto kLockPatience = 500ms;
constexpr auto kLockPause = 10ms;
constexpr int kRaces = 100;

std::string hostName() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

/// Who signed the lock file; nothing if it is blank, as while a reader holds it.
std::optional<SessionLock::Holder> readHolder(int descriptor) {
    std::array<char, 1024> buffer{};
    const ssize_t size = pread(descriptor, buffer.data(), buffer.size(), 0);
    if (size <= 0) return std::nullopt;
    const auto json =
        nlohmann::json::parse(buffer.data(), buffer.data() + size, nullptr, /*exceptions=*/false);
    SessionLock::Holder holder;
    if (!json.is_object()) return holder;
    if (const auto it = json.find("process"); it != json.end() && it->is_number_integer())
        holder.process = it->get<long>();
    if (const auto it = json.find("host"); it != json.end() && it->is_string())
        holder.host = it->get<std::string>();
    if (const auto it = json.find("since"); it != json.end() && it->is_string())
        holder.since = it->get<std::string>();
    return holder;
}

/// Whether the name leads to the very file that is open.
bool isStill(const std::filesystem::path& file, int descriptor) {
    struct stat byName{}, byDescriptor{};
    return stat(file.c_str(), &byName) == 0 && fstat(descriptor, &byDescriptor) == 0 &&
           byName.st_ino == byDescriptor.st_ino && byName.st_dev == byDescriptor.st_dev;
}

/// Where a lock file exists it may be locked even if it may not be written.
int openLockFile(const std::filesystem::path& file) {
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor >= 0) return descriptor;
    const int error = errno;
    const int readable = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (readable < 0) errno = error;
    return readable;
}

} // namespace

bool SessionLock::Holder::onThisHost() const {
    return host.empty() || host == hostName();
}

std::string SessionLock::Holder::toString() const {
    if (process == 0) return "another process";
    return fmt::format("process {} on host {} since {}", process, host, since);
}

std::filesystem::path SessionLock::fileFor(const std::filesystem::path& session) {
    std::filesystem::path file = session;
    file += ".lock";
    return file;
}

SessionLock::SessionLock(std::filesystem::path file, int descriptor)
    : m_file(std::move(file)), m_descriptor(descriptor) {
}

SessionLock::SessionLock(SessionLock&& other) noexcept
    : m_file(std::move(other.m_file)), m_descriptor(std::exchange(other.m_descriptor, -1)) {
}

SessionLock& SessionLock::operator=(SessionLock&& other) noexcept {
    std::swap(m_file, other.m_file);
    std::swap(m_descriptor, other.m_descriptor);
    return *this;
}

SessionLock::~SessionLock() {
    if (m_descriptor < 0) return;
    // Only the last holder removes the file, and only while it holds it alone.
    if (flock(m_descriptor, LOCK_EX | LOCK_NB) == 0 && isStill(m_file, m_descriptor))
        unlink(m_file.c_str());
    close(m_descriptor);
}

SessionLock::Attempt SessionLock::attempt(const std::filesystem::path& session, int operation) {
    const std::filesystem::path file = fileFor(session);
    for (int race = 0; race < kRaces; ++race) {
        const int descriptor = openLockFile(file);
        if (descriptor < 0)
            return Impossible{fmt::format("its lock file cannot be made ({})",
                                          std::generic_category().message(errno))};
        if (flock(descriptor, operation | LOCK_NB) == 0) {
            if (isStill(file, descriptor)) return SessionLock(file, descriptor);
            close(descriptor);
            continue;
        }
        const int error = errno;
        const Holder holder = readHolder(descriptor).value_or(Holder{});
        close(descriptor);
        if (error == EWOULDBLOCK) return holder;
        return Impossible{fmt::format("its lock file cannot be locked ({})",
                                      std::generic_category().message(error))};
    }
    return Holder{};
}

void SessionLock::signIn() const {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const nlohmann::json holder = {{"process", static_cast<long>(getpid())},
                                   {"host", hostName()},
                                   {"since", fmt::format("{:%FT%TZ}", fmt::gmtime(now))}};
    const std::string text = holder.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    // The text is for people only; a disk too full for it does not void the lock.
    if (ftruncate(m_descriptor, 0) == 0)
        static_cast<void>(!pwrite(m_descriptor, text.data(), text.size(), 0));
}

SessionLock::Attempt SessionLock::tryExclusive(const std::filesystem::path& session) {
    const auto deadline = std::chrono::steady_clock::now() + kLockPatience;
    for (;;) {
        Attempt result = attempt(session, LOCK_EX);
        if (const auto* lock = std::get_if<SessionLock>(&result)) lock->signIn();
        // An unsigned lock is a reader's, or one that is just being taken or given back.
        const auto* holder = std::get_if<Holder>(&result);
        if (holder == nullptr || holder->process != 0 ||
            std::chrono::steady_clock::now() >= deadline)
            return result;
        std::this_thread::sleep_for(kLockPause);
    }
}

SessionLock::Attempt SessionLock::tryShared(const std::filesystem::path& session) {
    Attempt result = attempt(session, LOCK_SH);
    // A signature found now was left by a writer that died.
    if (const auto* lock = std::get_if<SessionLock>(&result))
        static_cast<void>(!ftruncate(lock->m_descriptor, 0));
    return result;
}

} // namespace shardlens
