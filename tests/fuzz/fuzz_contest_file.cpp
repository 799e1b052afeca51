// SPDX-License-Identifier: Apache-2.0
// Problem files of the contest on intra-operator parallelism: anything may be in them. What is read
// must be valid, and written again and read it must be the same problem.
#include "core/error.h"
#include "core/solve/contest_file.h"

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string_view>

using namespace shardlens;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    solve::IntervalProblem problem;
    try {
        problem = solve::readContest({reinterpret_cast<const char*>(data), size});
    } catch (const InputError&) {
        return 0;
    }
    solve::validate(problem);
    std::ostringstream out;
    const solve::ContestScale scale = solve::writeContest(out, problem);
    const solve::IntervalProblem again = solve::readContest(out.str());
    if (again.nodes.size() != problem.nodes.size() || again.pairs.size() != problem.pairs.size()) {
        std::abort();
    }
    for (std::size_t i = 0; i < problem.nodes.size() && scale.cost == 1; ++i) {
        if (again.nodes[i].cost != problem.nodes[i].cost) std::abort();
    }
    return 0;
}
