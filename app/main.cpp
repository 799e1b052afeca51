// SPDX-License-Identifier: Apache-2.0
// The program `shardlens`: a window, or one of the subcommands in app/commands. Exit codes:
// 0 done, 1 an error, said in one sentence on stderr, 2 the command line is wrong.
#include "app/commands/commands.h"
#include "core/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace {

using namespace shardlens;

constexpr int kFailure = 1;
constexpr int kUsage = 2;

int say(std::string_view sentence, int code) {
    fmt::print(stderr, "shardlens: {}\n", sentence);
    return code;
}

/// What was printed is only done once it has left: a full disk is an error too.
void flushOutput() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        throw Error(fmt::format("the output could not be written: {}", std::strerror(errno)));
    }
}

int run(int argc, char** argv) {
    CLI::App cli("Explore parallel-training plans: the provably best sharding of a model over a "
                 "cluster, with what every other choice would cost.");
    cli.name("shardlens");
    cli.set_version_flag("--version", "shardlens " SHARDLENS_VERSION);
    cli.require_subcommand(0, 1);

    const app::Arguments arguments{argc, argv};
    std::string file;
    app::Action action = [&] { return app::openWindow(file, arguments); };
    cli.add_option("FILE", file, "Model or session to open in the window");
    app::addInfo(cli, action);
    app::addPlan(cli, action);
    app::addVerify(cli, action);
    app::addSchedule(cli, arguments, action);
    app::addSolve(cli, action);
    app::addSweep(cli, action);
    app::addClusters(cli, action);
    app::addScreenshot(cli, arguments, action);
    app::addLayoutHelper(cli, action);

    try {
        cli.parse(argc, argv);
        if (!file.empty() && !cli.get_subcommands().empty()) {
            throw CLI::ExtrasError(cli.get_name(), {file});
        }
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return cli.exit(error); // --help, --version
        const auto chosen = cli.get_subcommands();
        const auto about = chosen.empty() ? std::string() : chosen.front()->get_name() + " ";
        return say(fmt::format("{}; see shardlens {}--help", error.what(), about), kUsage);
    }
    const int code = action();
    flushOutput();
    return code;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        return say("there is not enough memory for this", kFailure);
    } catch (const std::exception& error) {
        return say(error.what(), kFailure);
    }
}
