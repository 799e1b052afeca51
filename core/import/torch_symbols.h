// SPDX-License-Identifier: Apache-2.0
// Symbolic sizes of PyTorch graphs (`s0`, `2*s0`, `(s0//2)`), bound to numbers when first met: by
// the user, by the size the file was traced with, or else by place: the first dimension of a tensor
// is a batch, the second a sequence.
#pragma once

#include "core/import/importer.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens::torch {

/// Bounds of sizes, as for ONNX: sums and products of a few stay in 64 bits.
inline constexpr std::int64_t kMaxDim = std::int64_t{1} << 40;
inline constexpr double kMaxElements = 9007199254740992.0;
inline constexpr std::size_t kMaxRank = 64;

class Symbols {
public:
    explicit Symbols(const ImportOptions& options) : m_options(options) {}

    /// The size a symbol was traced with; less than what the user says, more than a guess.
    void hint(std::string_view symbol, std::int64_t value);
    /// @param dim where in a tensor the expression stands, -1 if in none
    /// @return std::nullopt if the text is no expression, or its value no size
    std::optional<std::int64_t> evaluate(std::string_view text, int dim = -1);
    /// @throws InputError when the user bound a name that the file does not have
    void checkBindings(const std::string& where) const;

    const std::map<std::string, std::int64_t>& bindings() const { return m_bindings; }
    const std::vector<std::string>& warnings() const { return m_warnings; }

private:
    std::int64_t valueOf(std::string_view name, int dim);

    const ImportOptions& m_options;
    std::map<std::string, std::int64_t> m_hints, m_bindings;
    std::vector<std::string> m_warnings;
};

/// False when the rank, a dimension or their product is out of bounds.
bool isReasonable(const Shape& shape);

} // namespace shardlens::torch
