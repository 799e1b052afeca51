// SPDX-License-Identifier: Apache-2.0
// Writes small GGUF files for tests: values, tensors, and as many zeros as the tensors need.
#pragma once

#include "core/model/tensor.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace shardlens::test {

class GgufWriter {
public:
    std::uint32_t version = 3;
    std::uint64_t extraTensors = 0; ///< claimed, but not there

    static std::string number(std::uint64_t value, int bytes) {
        std::string result;
        for (int i = 0; i < bytes; ++i)
            result.push_back(static_cast<char>(value >> (8 * i) & 0xff));
        return result;
    }
    static std::string string(const std::string& text) { return number(text.size(), 8) + text; }

    void raw(const std::string& key, std::uint32_t type, const std::string& bytes) {
        m_values += string(key) + number(type, 4) + bytes;
        ++m_valueCount;
    }
    void integer(const std::string& key, std::uint32_t value) { raw(key, 4, number(value, 4)); }
    void text(const std::string& key, const std::string& value) { raw(key, 8, string(value)); }
    void strings(const std::string& key, std::size_t count) {
        std::string list = number(8, 4) + number(count, 8);
        for (std::size_t i = 0; i < count; ++i) list += string("token" + std::to_string(i));
        raw(key, 9, list);
    }
    void integers(const std::string& key, const std::vector<std::uint32_t>& values) {
        std::string list = number(4, 4) + number(values.size(), 8);
        for (const std::uint32_t value : values) list += number(value, 4);
        raw(key, 9, list);
    }

    /// @param shape slowest dimension first; @param bits of an element of that type
    void tensor(const std::string& name, const Shape& shape, std::uint32_t type = 0,
                double bits = 32) {
        m_tensors += string(name) + number(shape.size(), 4);
        for (std::size_t d = shape.size(); d-- > 0;)
            m_tensors += number(static_cast<std::uint64_t>(shape[d]), 8);
        m_tensors += number(type, 4) + number(m_data, 8);
        m_data += static_cast<std::uint64_t>(std::ceil(elementsOf(shape) * bits / 8 / 32)) * 32;
        ++m_tensorCount;
    }

    std::string header() const {
        return "GGUF" + number(version, 4) + number(m_tensorCount + extraTensors, 8) +
               number(m_valueCount, 8) + m_values + m_tensors;
    }
    std::string bytes() const {
        std::string result = header();
        result.resize((result.size() + 31) / 32 * 32 + m_data, '\0');
        return result;
    }

private:
    std::string m_values, m_tensors;
    std::uint64_t m_valueCount = 0, m_tensorCount = 0, m_data = 0;
};

} // namespace shardlens::test
