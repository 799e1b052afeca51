// SPDX-License-Identifier: Apache-2.0
// Arrays that a loop fills piece by piece (dynamic-update-slice at a known index): what layers save
// for the backward pass, and stacked gradients. While only pieces are written and read back they
// stay virtual, so that a reader sees the op that made its piece; read as a whole, the array is the
// concatenation of its pieces. Both are exactly what the updates mean.
#pragma once

#include "core/model/graph.h"

#include <optional>
#include <unordered_map>
#include <vector>

namespace shardlens::hlo {

/// A value's leaf: a tensor of the graph, kNoTensor for a token, or a version of a virtual array.
using Leaf = std::uint32_t;

class Buffers {
public:
    static constexpr Leaf kVersionBit = 0x80000000U;
    static bool isVirtual(Leaf leaf) { return leaf != kNoTensor && (leaf & kVersionBit) != 0; }

    /// A box of an array: along each dimension from `starts`, as far as `sizes`.
    struct Box {
        Shape starts, sizes;
    };

    const TensorSpec& spec(Leaf leaf) const { return bufferOf(leaf).spec; }

    /// `update` written over `base` (a tensor, or virtual) at the box. std::nullopt if the box is
    /// not one cell of a grid along one dimension, or the grid is another one than before.
    std::optional<Leaf> write(Leaf base, const TensorSpec& spec, TensorId update, const Box& box);

    /// The tensor that was written exactly there.
    std::optional<TensorId> read(Leaf leaf, const Box& box) const;

    struct Cell {
        std::int64_t start = 0, size = 0;
        TensorId tensor = kNoTensor; ///< kNoTensor: still as in the base
    };
    /// The cells along `axis`, those not written joined.
    struct Pieces {
        std::size_t axis = 0;
        TensorId base = kNoTensor;
        std::vector<Cell> cells;
    };
    Pieces pieces(Leaf leaf) const;

    /// The tensor made of a version, kept so that it is made once.
    TensorId& made(Leaf leaf) { return m_versions[leaf & ~kVersionBit].made; }

    /// Cells looked at so far, for a limit on hostile files.
    std::size_t work() const { return m_work; }

private:
    struct Buffer {
        TensorSpec spec;
        TensorId base = kNoTensor;
        std::size_t axis = 0;
        std::int64_t cell = 1;
        std::vector<std::pair<std::int64_t, TensorId>> log;     ///< cell index, update
        std::unordered_map<std::int64_t, std::uint32_t> latest; ///< cell index -> place in log
    };
    struct Version {
        std::uint32_t buffer = 0;
        std::uint32_t length = 0; ///< of the log
        TensorId made = kNoTensor;
    };

    const Buffer& bufferOf(Leaf leaf) const {
        return m_buffers[m_versions[leaf & ~kVersionBit].buffer];
    }
    Leaf addVersion(std::uint32_t buffer, std::uint32_t length);

    std::vector<Buffer> m_buffers;
    std::vector<Version> m_versions;
    mutable std::size_t m_work = 0;
};

} // namespace shardlens::hlo
