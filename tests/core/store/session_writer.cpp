// SPDX-License-Identifier: Apache-2.0
// The process that tests kill: plays the scripted session on a file and says, after each operation
// has returned, which one it was; closes and reopens the session now and then.
// `session_writer FILE SEED FIRST COUNT`; at the end it waits, with the session still open, for the
// end of its input.
#include "session_sample.h"
#include "session_script.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace {

void say(const std::string& line) {
    // One write() a line: what was said is out, whatever happens next.
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::exit(3);
}

shardlens::Session openOrCreate(const std::filesystem::path& file) {
    using shardlens::Session;
    if (std::filesystem::exists(file)) return Session::open(file);
    return Session::create(file, shardlens::test::sampleSession());
}

void work(const std::filesystem::path& file, unsigned seed, std::size_t first, std::size_t count) {
    using namespace shardlens;
    std::optional<Session> session = openOrCreate(file);
    say(session->readOnly() ? session->readOnlyReason() + "\n" : "ready\n");
    for (std::size_t number = first; number < first + count; ++number) {
        test::play(*session, test::operationAt(seed, number));
        say(std::to_string(number) + "\n");
        if (number % 16 != 15) continue;
        session.reset(); // closing moves the log into the file: an instant to be killed at, too
        session = Session::open(file);
    }
    say("done\n");
    std::getchar();
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    try {
        work(argv[1], static_cast<unsigned>(std::stoul(argv[2])), std::stoul(argv[3]),
             std::stoul(argv[4]));
        return 0;
    } catch (const std::exception& error) {
        say(std::string(error.what()) + "\n");
        return 1;
    }
}
