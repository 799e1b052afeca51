// SPDX-License-Identifier: Apache-2.0
// See test_program.h: finds the test that is named and runs it.
#include "tests/test_program.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

namespace shardlens::test {

namespace {

std::map<std::string, RunTest>& tests() {
    static std::map<std::string, RunTest> all;
    return all;
}

} // namespace

RegisteredTest::RegisteredTest(const char* source, RunTest run) {
    tests().emplace(std::filesystem::path(source).stem().string(), run);
}

} // namespace shardlens::test

int main(int argc, char** argv) {
    using shardlens::test::tests;
    const auto found = argc > 1 ? tests().find(argv[1]) : tests().end();
    if (found == tests().end()) {
        std::fprintf(stderr, "usage: %s TEST [QtTest's arguments], where TEST is one of\n",
                     argv[0]);
        for (const auto& [name, run] : tests()) std::fprintf(stderr, "  %s\n", name.c_str());
        return 2;
    }
    std::rotate(argv + 1, argv + 2, argv + argc); // QtTest sees its own arguments only
    argv[argc - 1] = nullptr;
    return found->second(argc - 1, argv);
}
