// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions as exporters write them: a name ("batch_size"), or an expression over names
// ("seq_len + 1", "2*batch", "past + (seq - 1)"). Evaluated once the names are bound to numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace shardlens {

/// The names an expression is made of, in order of appearance; empty if `text` is no expression of
/// names, integers, + - * / // and parentheses. A lone name is its own only element. A minus sign
/// or a slash counts as an operator only between blanks, because names contain them.
std::vector<std::string_view> namesInDimension(std::string_view text);

/// Value of an expression. std::nullopt if it is none, if `valueOf` does not know one of its names,
/// or if the result is out of range.
std::optional<std::int64_t>
evaluateDimension(std::string_view text,
                  const std::function<std::optional<std::int64_t>(std::string_view)>& valueOf);

} // namespace shardlens
