// SPDX-License-Identifier: Apache-2.0
// See hlo_buffers.h. A version is a buffer and a length of its log, so that a loop of n updates
// costs n entries; writing to a version that is not the newest starts a new buffer.
#include "core/import/hlo_buffers.h"

#include <algorithm>

namespace shardlens::hlo {

namespace {

/// The one dimension along which a box is a cell of a regular grid.
std::optional<std::size_t> gridAxis(const Shape& shape, const Buffers::Box& box) {
    if (box.starts.size() != shape.size() || box.sizes.size() != shape.size()) return std::nullopt;
    std::optional<std::size_t> axis;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (box.sizes[d] == shape[d]) continue;
        if (axis || box.sizes[d] <= 0 || shape[d] % box.sizes[d] != 0 ||
            box.starts[d] % box.sizes[d] != 0)
            return std::nullopt;
        axis = d;
    }
    return axis;
}

} // namespace

Leaf Buffers::addVersion(std::uint32_t buffer, std::uint32_t length) {
    m_versions.push_back({buffer, length, kNoTensor});
    return static_cast<Leaf>(m_versions.size() - 1) | kVersionBit;
}

std::optional<Leaf> Buffers::write(Leaf base, const TensorSpec& spec, TensorId update,
                                   const Box& box) {
    const auto axis = gridAxis(spec.shape, box);
    if (!axis) return std::nullopt;
    const std::int64_t cell = box.sizes[*axis], index = box.starts[*axis] / cell;
    std::uint32_t buffer = 0;
    if (isVirtual(base)) {
        const Version version = m_versions[base & ~kVersionBit];
        buffer = version.buffer;
        const Buffer& old = m_buffers[buffer];
        if (old.axis != *axis || old.cell != cell) return std::nullopt;
        if (version.length != old.log.size()) {
            Buffer copy{old.spec, old.base, old.axis, old.cell, {}, {}};
            for (std::uint32_t i = 0; i < version.length; ++i) {
                copy.latest[old.log[i].first] = i;
                copy.log.push_back(old.log[i]);
            }
            m_work += version.length;
            buffer = static_cast<std::uint32_t>(m_buffers.size());
            m_buffers.push_back(std::move(copy));
        }
    } else {
        buffer = static_cast<std::uint32_t>(m_buffers.size());
        m_buffers.push_back({spec, base, *axis, cell, {}, {}});
    }
    Buffer& target = m_buffers[buffer];
    const auto place = static_cast<std::uint32_t>(target.log.size());
    target.log.emplace_back(index, update);
    target.latest[index] = place;
    return addVersion(buffer, place + 1);
}

std::optional<TensorId> Buffers::read(Leaf leaf, const Box& box) const {
    const Version& version = m_versions[leaf & ~kVersionBit];
    const Buffer& buffer = m_buffers[version.buffer];
    const auto axis = gridAxis(buffer.spec.shape, box);
    if (axis != buffer.axis || box.sizes[*axis] != buffer.cell) return std::nullopt;
    const std::int64_t index = box.starts[*axis] / buffer.cell;
    const auto found = buffer.latest.find(index);
    if (found == buffer.latest.end()) return std::nullopt;
    if (found->second < version.length) return buffer.log[found->second].second;
    for (std::uint32_t i = version.length; i-- > 0; ++m_work) // overwritten since
        if (buffer.log[i].first == index) return buffer.log[i].second;
    return std::nullopt;
}

Buffers::Pieces Buffers::pieces(Leaf leaf) const {
    const Version& version = m_versions[leaf & ~kVersionBit];
    const Buffer& buffer = m_buffers[version.buffer];
    std::unordered_map<std::int64_t, TensorId> written;
    for (std::uint32_t i = 0; i < version.length; ++i)
        written[buffer.log[i].first] = buffer.log[i].second;
    std::vector<std::int64_t> indices;
    for (const auto& [index, tensor] : written) indices.push_back(index);
    std::ranges::sort(indices);
    m_work += version.length;
    Pieces result{buffer.axis, buffer.base, {}};
    std::int64_t end = 0;
    const auto gap = [&](std::int64_t until) {
        if (until > end) result.cells.push_back({end, until - end, kNoTensor});
    };
    for (const std::int64_t index : indices) {
        gap(index * buffer.cell);
        result.cells.push_back({index * buffer.cell, buffer.cell, written[index]});
        end = (index + 1) * buffer.cell;
    }
    gap(buffer.spec.shape[buffer.axis]);
    return result;
}

} // namespace shardlens::hlo
