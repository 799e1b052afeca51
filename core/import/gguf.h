// SPDX-License-Identifier: Apache-2.0
// The header of a GGUF file: metadata and the list of tensors, read in place from a mapped file.
// Token lists and other long values are skipped without being stored; weights are never touched.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include "core/model/tensor.h"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

namespace shardlens::gguf {

/// How elements are packed: `elements` of them take `bytes`.
struct Packing {
    std::uint32_t id = 0;
    std::string_view name; ///< "F16", "Q4_K"
    std::int64_t elements = 1;
    std::int64_t bytes = 0;
    double bits() const { return 8.0 * static_cast<double>(bytes) / static_cast<double>(elements); }
};

struct Tensor {
    std::string_view name;
    Shape shape; ///< slowest dimension first, the reverse of the file's order
    Packing packing;
    std::uint64_t offset = 0; ///< in the data that follows the header
    double elements() const { return elementsOf(shape); }
};

/// Lists are kept while they are short and of integers; of others only the length is.
struct List {
    std::uint64_t length = 0;
    std::vector<std::int64_t> integers;
};
using Value = std::variant<std::int64_t, double, bool, std::string_view, List>;

struct Header {
    std::uint32_t version = 0;
    std::map<std::string_view, Value> metadata;
    std::vector<Tensor> tensors;
    std::uint64_t dataBegin = 0; ///< byte of the file

    std::optional<std::int64_t> integer(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<std::string_view> text(std::string_view key) const;
    const List* list(std::string_view key) const;
};

/// Views point into `file`. @throws InputError with the byte offset; Cancelled
Header parseHeader(std::span<const std::byte> file, const std::string& where,
                   const std::stop_token& stop = {});

} // namespace shardlens::gguf
