// SPDX-License-Identifier: Apache-2.0
// Element types, shapes and tensors of a graph. Sizes are concrete: importers bind symbolic
// dimensions to numbers when they read a file, so that every later stage computes with integers.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

enum class DType : std::uint8_t {
    Unknown,
    F64,
    F32,
    F16,
    BF16,
    F8E4M3,
    F8E5M2,
    F4E2M1,
    I64,
    I32,
    I16,
    I8,
    I4,
    U64,
    U32,
    U16,
    U8,
    U4,
    Bool,
    String,
    C64,
    C128,
};

/// Bits of one element; 0 for Unknown and String.
int bitsOf(DType dtype) noexcept;
bool isFloat(DType dtype) noexcept;
std::string_view nameOf(DType dtype) noexcept;             ///< "bf16", "i64", "bool", …
std::optional<DType> dtypeFromName(std::string_view name); ///< inverse of nameOf

using Shape = std::vector<std::int64_t>;

/// Product of the dimensions, as a double because 2^53 is exceeded only by hostile files.
double elementsOf(const Shape& shape) noexcept;
std::string toString(const Shape& shape); ///< "[8,2048,4096]"

/// What an operand or result is, as shape functions and rules see it.
struct TensorSpec {
    DType dtype = DType::Unknown;
    Shape shape;

    friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// Bytes of a whole (unsharded) tensor; sub-byte types are packed.
double bytesOf(const TensorSpec& spec) noexcept;

using OpId = std::uint32_t;
using TensorId = std::uint32_t;
inline constexpr OpId kNoOp = std::numeric_limits<OpId>::max();
inline constexpr TensorId kNoTensor = std::numeric_limits<TensorId>::max();

/// A small integer (or bool) tensor whose elements are known while the graph is being read:
/// shape arithmetic of exported models. Row-major.
using KnownInts = std::vector<std::int64_t>;

/// Likewise of a small floating-point constant (an epsilon, a scale).
using KnownReals = std::vector<double>;

struct Tensor {
    std::string name;
    TensorSpec spec;
    OpId producer = kNoOp; ///< every tensor has one: inputs and parameters are ops too
    std::uint32_t producerPort = 0;
    std::optional<KnownInts> value;  ///< set when the elements are known
    std::optional<KnownReals> reals; ///< likewise, for floating-point constants
};

} // namespace shardlens
