// SPDX-License-Identifier: Apache-2.0
// What can be wrong with the nodes and matrices of any choice problem.
#include "core/solve/problem_checks.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardlens::solve {

void failCheck(std::string what, std::string where) {
    throw Error(std::move(what), std::move(where), "check how the choice problem was built");
}

void checkCosts(std::span<const double> costs, const std::string& where) {
    const auto bad = [](double cost) { return std::isnan(cost) || cost == -kInfinite; };
    if (std::ranges::any_of(costs, bad))
        failCheck("a cost is not a number or minus infinity", where);
}

void checkChoices(std::span<const double> costs, std::span<const double> usages,
                  const std::string& where) {
    if (costs.empty()) failCheck("a node has no choice", where);
    if (costs.size() > kMostChoices) {
        failCheck(fmt::format("a node has {} choices, more than {}", costs.size(), kMostChoices),
                  where);
    }
    if (!usages.empty() && usages.size() != costs.size())
        failCheck(fmt::format("{} usages for {} choices", usages.size(), costs.size()), where);
    checkCosts(costs, where);
}

void checkMatrix(const Matrix& matrix, std::size_t rows, std::size_t cols,
                 const std::string& where) {
    if (matrix.rows != rows || matrix.cols != cols || matrix.values.size() != rows * cols) {
        failCheck(fmt::format("a {}x{} matrix of {} values joins {} and {} choices", matrix.rows,
                              matrix.cols, matrix.values.size(), rows, cols),
                  where);
    }
}

} // namespace shardlens::solve
