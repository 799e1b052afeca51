// SPDX-License-Identifier: Apache-2.0
// Checks that folded and interval problems have in common: nodes with finite choices, and matrices
// that fit the nodes they join.
#pragma once

#include "core/solve/problem.h"

#include <span>
#include <string>

namespace shardlens::solve {

/// @throws Error saying how to find the fault
[[noreturn]] void failCheck(std::string what, std::string where);

/// Costs that are numbers (infinity forbids a choice). @throws Error
void checkCosts(std::span<const double> costs, const std::string& where);

/// A node's choices: some, not too many, costs that are numbers, a usage for each or none.
/// @throws Error
void checkChoices(std::span<const double> costs, std::span<const double> usages,
                  const std::string& where);

/// A matrix of as many values as its sides say, for nodes of that many choices. @throws Error
void checkMatrix(const Matrix& matrix, std::size_t rows, std::size_t cols,
                 const std::string& where);

} // namespace shardlens::solve
