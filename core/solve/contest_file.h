// SPDX-License-Identifier: Apache-2.0
// The file format of the ASPLOS/EuroSys 2025 contest on intra-operator parallelism
// (github.com/google/iopddl): JSON, plain or gzip. Costs of 10^18 and more forbid. Read as a
// stream, so that memory holds the problem and not its text; equal matrices are kept once.
#pragma once

#include "core/solve/interval_problem.h"

#include <filesystem>
#include <iosfwd>
#include <string_view>

namespace shardlens::solve {

/// Whether a file's first characters are those of a problem: an object that begins with "problem".
/// False if it cannot be read.
bool isContestFile(const std::filesystem::path& file);

/// @throws InputError naming the file and the place in it
IntervalProblem readContestFile(const std::filesystem::path& file);
/// @param bytes JSON or gzip of it
/// @throws InputError naming the place
IntervalProblem readContest(std::string_view bytes);

/// Writes JSON. The format holds integers: costs and usages that are none are scaled by powers of
/// two and rounded. Only usages that count are written.
struct ContestScale {
    double cost = 1, usage = 1; ///< what was written is ours times this; 1 unless rounding
};
/// @throws Error when the problem is not valid
ContestScale writeContest(std::ostream& out, const IntervalProblem& problem);

/// The contest's form of a solution: "[0, 2, 1]".
std::string solutionLine(std::span<const Choice> choices);
/// @throws InputError when the text is not one list of choices
ChoiceList readSolution(std::string_view text);

} // namespace shardlens::solve
