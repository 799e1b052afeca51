// SPDX-License-Identifier: Apache-2.0
// The helper is started by posix_spawn (safe in a program with threads) with one end of a socket
// pair as its standard input and output. A socket rather than two pipes because a write to a dead
// helper can then be told not to raise SIGPIPE in the window's process.
#include "core/layout/layout_process.h"

#include "core/error.h"
#include "core/layout/graphviz_layout.h"
#include "core/layout/layered_layout.h"
#include "core/layout/layout_json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <istream>
#include <ostream>
#include <string_view>
#include <system_error>
#include <utility>

namespace shardlens {

namespace {

using Clock = std::chrono::steady_clock;

// The helper failed; the layered layout takes over.
struct HelperError : Error {
    explicit HelperError(std::string problem) : Error(std::move(problem), "layout helper") {}
};

HelperError systemError(const char* call, int code) {
    return HelperError(fmt::format("{}: {}", call, std::generic_category().message(code)));
}

class Descriptor {
public:
    explicit Descriptor(int value) : m_value(value) {}
    Descriptor(Descriptor&& other) noexcept : m_value(std::exchange(other.m_value, -1)) {}
    ~Descriptor() { close(); }
    Descriptor& operator=(Descriptor&&) = delete;

    int get() const { return m_value; }
    void close() {
        if (m_value >= 0) ::close(std::exchange(m_value, -1));
    }

private:
    int m_value;
};

std::pair<Descriptor, Descriptor> makeSocketPair() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw systemError("socketpair", errno);
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// File actions and attributes of a spawn: the socket as stdin and stdout, no stderr, and default
// signals, since the starting thread may have blocked some.
class SpawnSetup {
public:
    explicit SpawnSetup(int socket) {
        posix_spawn_file_actions_init(&m_actions);
        posix_spawnattr_init(&m_attributes);
        posix_spawn_file_actions_adddup2(&m_actions, socket, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&m_actions, socket, STDOUT_FILENO);
        posix_spawn_file_actions_addopen(&m_actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        sigset_t signals;
        sigemptyset(&signals);
        posix_spawnattr_setsigmask(&m_attributes, &signals);
        sigaddset(&signals, SIGPIPE);
        posix_spawnattr_setsigdefault(&m_attributes, &signals);
        posix_spawnattr_setflags(&m_attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~SpawnSetup() {
        posix_spawnattr_destroy(&m_attributes);
        posix_spawn_file_actions_destroy(&m_actions);
    }
    SpawnSetup(const SpawnSetup&) = delete;
    SpawnSetup& operator=(const SpawnSetup&) = delete;

    const posix_spawn_file_actions_t* actions() const { return &m_actions; }
    const posix_spawnattr_t* attributes() const { return &m_attributes; }

private:
    posix_spawn_file_actions_t m_actions;
    posix_spawnattr_t m_attributes;
};

// A running helper; killed and reaped at the end of the scope whatever happens.
class Child {
public:
    Child(const std::string& executable, const std::vector<std::string>& arguments, int socket) {
        const SpawnSetup setup(socket);
        std::vector<char*> argv{const_cast<char*>(executable.c_str())};
        for (const std::string& argument : arguments)
            argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(nullptr);
        const int code = posix_spawn(&m_pid, executable.c_str(), setup.actions(),
                                     setup.attributes(), argv.data(), environ);
        if (code != 0) throw systemError(executable.c_str(), code);
    }
    ~Child() {
        kill(m_pid, SIGKILL);
        while (waitpid(m_pid, nullptr, 0) < 0 && errno == EINTR) {}
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

private:
    pid_t m_pid = -1;
};

// One question and its answer over a socket, within the limits of time and patience.
class Exchange {
public:
    Exchange(int socket, Clock::time_point deadline, const std::stop_token& stop)
        : m_socket(socket), m_deadline(deadline), m_stop(stop) {}

    void send(std::string_view text) {
        while (!text.empty()) {
            wait(POLLOUT);
            const ssize_t sent =
                ::send(m_socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
            if (sent < 0 && !isTemporary(errno)) throw systemError("send", errno);
        }
        shutdown(m_socket, SHUT_WR);
    }

    // The first line of the answer.
    std::string receiveLine() {
        constexpr std::size_t maxAnswer = 64u << 20;
        std::string answer;
        std::array<char, 1u << 16> buffer;
        while (answer.size() < maxAnswer) {
            wait(POLLIN);
            const ssize_t got = recv(m_socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (got < 0 && !isTemporary(errno)) throw systemError("recv", errno);
            if (got == 0) throw HelperError("it ended without an answer");
            if (got < 0) continue;
            const std::string_view part(buffer.data(), static_cast<std::size_t>(got));
            const std::size_t end = part.find('\n');
            answer += part.substr(0, end);
            if (end != std::string_view::npos) return answer;
        }
        throw HelperError("its answer does not end");
    }

private:
    static bool isTemporary(int code) {
        return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
    }

    // Returns when the socket is ready; looks at the clock and the stop token every few ms.
    void wait(short events) {
        constexpr int pollMilliseconds = 10;
        while (true) {
            throwIfStopped(m_stop);
            if (Clock::now() >= m_deadline) throw HelperError("it took too long");
            pollfd entry{m_socket, events, 0};
            const int ready = poll(&entry, 1, pollMilliseconds);
            if (ready > 0) return;
            if (ready < 0 && errno != EINTR) throw systemError("poll", errno);
        }
    }

    int m_socket;
    Clock::time_point m_deadline;
    const std::stop_token& m_stop;
};

} // namespace

int runLayoutHelper(std::istream& input, std::ostream& output) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int exitCode = 0;
    for (std::string line; std::getline(input, line);) {
        try {
            output << layoutResultToJson(graphvizLayout(layoutInputFromJson(line))) << std::endl;
        } catch (const std::exception& e) {
            output << nlohmann::json{{"error", e.what()}}.dump() << std::endl;
            exitCode = 1;
        }
    }
    return exitCode;
}

HelperLayouter::HelperLayouter(std::string executable, std::vector<std::string> arguments,
                               double timeLimitSeconds)
    : m_executable(std::move(executable)), m_arguments(std::move(arguments)),
      m_timeLimitSeconds(timeLimitSeconds) {
}

LayoutResult HelperLayouter::layout(const LayoutInput& input, const std::stop_token& stop) const {
    checkLayoutInput(input);
    throwIfStopped(stop);
    std::string reason;
    try {
        return ask(input, stop);
    } catch (const Cancelled&) {
        throw;
    } catch (const Error& e) {
        reason = e.what();
    }
    LayoutResult result = layeredLayout(input, stop);
    result.note = std::move(reason);
    return result;
}

LayoutResult HelperLayouter::ask(const LayoutInput& input, const std::stop_token& stop) const {
    const auto limit = std::chrono::duration<double>(m_timeLimitSeconds);
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
    auto [ours, theirs] = makeSocketPair();
    const Child child(m_executable, m_arguments, theirs.get());
    theirs.close();
    Exchange exchange(ours.get(), deadline, stop);
    exchange.send(layoutInputToJson(input) + '\n');
    LayoutResult result = layoutResultFromJson(exchange.receiveLine());
    checkLayoutResult(input, result);
    return result;
}

} // namespace shardlens
