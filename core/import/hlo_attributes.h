// SPDX-License-Identifier: Apache-2.0
// The attribute values of HLO instructions that the import looks into: lists of numbers, slices,
// padding, windows, and the devices named by shardings and replica groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace shardlens::hlo {

/// All integers in a text, in order: "{0,1}" -> 0, 1. std::nullopt if one does not fit 64 bits.
std::optional<std::vector<std::int64_t>> integersIn(std::string_view text);

/// "{[0:8192], [1:128:2]}"
struct SliceRange {
    std::int64_t start = 0, limit = 0, stride = 1;
};
std::optional<std::vector<SliceRange>> slicesIn(std::string_view text);

/// "0_0x127_0x1_2_3": low, high, interior of each dimension.
struct PadRange {
    std::int64_t low = 0, high = 0, interior = 0;
};
std::optional<std::vector<PadRange>> padsIn(std::string_view text);

/// "{size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=… rhs_dilate=… rhs_reversal=…}"; what is not
/// written has its default.
struct Window {
    std::vector<std::int64_t> size, stride, lhsDilate, rhsDilate, reversal;
    std::vector<PadRange> pad;
};
std::optional<Window> windowIn(std::string_view text);

/// "b01f_01io->b01f": where each dimension stands.
struct DimLabels {
    struct Side {
        std::size_t first = 0, second = 0; ///< batch and feature; of the kernel: output and input
        std::vector<std::size_t> spatial;  ///< in the order of their labels
    };
    Side input, kernel, output;
};
std::optional<DimLabels> dimLabelsIn(std::string_view text);

/// An array of devices with the extents in front of it: a tile assignment `[2,4]<=[8]`,
/// `[2,2]0,1,3,2` or `[4,2]<=[2,4]T(1,0)`, or a list of groups `{{0,1},{2,3}}`.
struct DeviceArray {
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> devices; ///< row-major
};
/// `text` begins at the first bracket. std::nullopt if it is no such array, or has more devices
/// than a machine could (2^20).
std::optional<DeviceArray> deviceArrayIn(std::string_view text);
std::optional<DeviceArray> deviceGroupsIn(std::string_view text);

} // namespace shardlens::hlo
