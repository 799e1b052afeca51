// SPDX-License-Identifier: Apache-2.0
// Strict reading of a config.json: every access names its key, knows the other names the same
// quantity goes by, and refuses what cannot be a hyper-parameter with one sentence.
#pragma once

#include "core/model/tensor.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens::hf {

/// No hyper-parameter of a real model comes near it; products of two still fit 64 bits.
inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;
inline constexpr std::int64_t kMostLayers = 10'000;

class Config {
public:
    /// @throws InputError with the byte offset when the text is no JSON object
    Config(std::string_view json, std::string where);

    bool has(std::string_view key) const { return find(key) != nullptr; }

    /// A size of 1 .. kLargestSize; required, or with a value for "absent or null".
    std::int64_t size(std::string_view key) const;
    std::int64_t size(std::string_view key, std::int64_t fallback) const;
    /// Like size(), but 0 (none) is allowed too.
    std::int64_t count(std::string_view key, std::int64_t fallback) const;
    std::int64_t layers(std::string_view key) const; ///< 1 .. kMostLayers

    double number(std::string_view key, double fallback) const;
    bool flag(std::string_view key, bool fallback) const;
    std::string text(std::string_view key, std::string fallback = {}) const;
    std::set<std::int64_t> integers(std::string_view key) const; ///< empty if absent
    /// Sizes in their order. @param fallback where there are none
    std::vector<std::int64_t> sizes(std::string_view key, std::vector<std::int64_t> fallback) const;
    std::string firstText(std::string_view key) const; ///< of a list of texts
    std::size_t entries(std::string_view key) const;   ///< of a map; 0 if absent
    std::string nestedText(std::string_view key, std::string_view member) const;

    /// `whole` must be a multiple of `part`. @throws InputError naming both keys
    void requireDivides(std::string_view wholeKey, std::int64_t whole, std::string_view partKey,
                        std::int64_t part) const;
    [[noreturn]] void fail(const std::string& problem, const std::string& hint = {}) const;

    /// Renames a member, for files that use other names. Does nothing when `from` is absent.
    bool rename(const std::string& from, const std::string& to);
    void set(const std::string& key, const std::string& value) { m_json[key] = value; }

private:
    /// Whole numbers in their order; empty if absent.
    std::vector<std::int64_t> list(std::string_view key, std::int64_t least) const;
    const nlohmann::json* find(std::string_view key) const;
    std::string nameUsed(std::string_view key) const;
    std::int64_t integer(std::string_view key, const nlohmann::json& value, std::int64_t least,
                         std::int64_t most) const;

    nlohmann::json m_json;
    std::string m_where;
};

} // namespace shardlens::hf
