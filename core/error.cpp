// SPDX-License-Identifier: Apache-2.0
// Composes the sentence of an Error: "where: problem; hint."
#include "core/error.h"

namespace shardlens {

namespace {

std::string sentence(const std::string& problem, const std::string& where,
                     const std::string& hint) {
    std::string text = where.empty() ? problem : where + ": " + problem;
    if (!hint.empty()) text += "; " + hint;
    return text;
}

} // namespace

Error::Error(std::string problem, std::string where, std::string hint)
    : std::runtime_error(sentence(problem, where, hint)), m_problem(std::move(problem)),
      m_where(std::move(where)), m_hint(std::move(hint)) {
}

} // namespace shardlens
