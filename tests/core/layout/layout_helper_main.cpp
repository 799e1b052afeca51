// SPDX-License-Identifier: Apache-2.0
// A layout helper for the tests: the real one, or one that misbehaves as its first argument says.
#include "core/layout/layout_json.h"
#include "core/layout/layout_process.h"

#include <chrono>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

int main(int argc, char** argv) {
    using namespace std::chrono_literals;
    const std::string_view mode = argc > 1 ? argv[1] : "--layout-helper";
    if (mode == "--layout-helper") return shardlens::runLayoutHelper(std::cin, std::cout);
    if (mode == "--exit") return 3; // without reading
    if (mode == "--sleep") std::this_thread::sleep_for(1h);
    std::string line;
    std::getline(std::cin, line);
    if (mode == "--garbage") std::cout << "segment: {[ \x01\xff" << std::endl;
    if (mode == "--other") // a good drawing of another graph
        std::cout << shardlens::layoutResultToJson({}) << std::endl;
    if (mode == "--half") std::cout << R"({"centres": [[1, 2], [3,)" << std::flush;
    while (mode == "--endless" && std::cout) std::cout << std::string(4096, '[');
    return 0;
}
