// SPDX-License-Identifier: Apache-2.0
// Element types and shapes: one table of names and widths.
#include "core/model/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace shardlens {

namespace {

struct DTypeRow {
    DType dtype;
    std::string_view name;
    int bits;
    bool floating;
};

constexpr std::array<DTypeRow, 22> kDTypes{{
    {DType::Unknown, "unknown", 0, false}, {DType::F64, "f64", 64, true},
    {DType::F32, "f32", 32, true},         {DType::F16, "f16", 16, true},
    {DType::BF16, "bf16", 16, true},       {DType::F8E4M3, "f8e4m3", 8, true},
    {DType::F8E5M2, "f8e5m2", 8, true},    {DType::F4E2M1, "f4e2m1", 4, true},
    {DType::I64, "i64", 64, false},        {DType::I32, "i32", 32, false},
    {DType::I16, "i16", 16, false},        {DType::I8, "i8", 8, false},
    {DType::I4, "i4", 4, false},           {DType::U64, "u64", 64, false},
    {DType::U32, "u32", 32, false},        {DType::U16, "u16", 16, false},
    {DType::U8, "u8", 8, false},           {DType::U4, "u4", 4, false},
    {DType::Bool, "bool", 8, false},       {DType::String, "string", 0, false},
    {DType::C64, "c64", 64, true},         {DType::C128, "c128", 128, true},
}};

const DTypeRow& rowOf(DType dtype) noexcept {
    const auto row = std::ranges::find(kDTypes, dtype, &DTypeRow::dtype);
    return row == kDTypes.end() ? kDTypes.front() : *row;
}

} // namespace

int bitsOf(DType dtype) noexcept {
    return rowOf(dtype).bits;
}

bool isFloat(DType dtype) noexcept {
    return rowOf(dtype).floating;
}

std::string_view nameOf(DType dtype) noexcept {
    return rowOf(dtype).name;
}

std::optional<DType> dtypeFromName(std::string_view name) {
    const auto row = std::ranges::find(kDTypes, name, &DTypeRow::name);
    if (row == kDTypes.end()) return std::nullopt;
    return row->dtype;
}

double elementsOf(const Shape& shape) noexcept {
    return std::transform_reduce(shape.begin(), shape.end(), 1.0, std::multiplies<>(),
                                 [](std::int64_t size) { return static_cast<double>(size); });
}

std::string toString(const Shape& shape) {
    return fmt::format("[{}]", fmt::join(shape, ","));
}

double bytesOf(const TensorSpec& spec) noexcept {
    return elementsOf(spec.shape) * bitsOf(spec.dtype) / 8.0;
}

} // namespace shardlens
