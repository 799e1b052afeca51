// SPDX-License-Identifier: Apache-2.0
// A chain of matrix products with large weights in one ONNX file. The weights' bytes are a hole in
// the file, so that it takes no space on disk.
#pragma once

#include "tests/core/import/onnx_writer.h"

#include <filesystem>
#include <fstream>

namespace shardlens::test {

/// Writes `layers` square float32 matrices of `width` rows. @return bytes of the file
inline std::uint64_t writeLargeOnnx(const std::filesystem::path& path, int layers,
                                    std::int64_t width) {
    const std::uint64_t weightBytes = 4 * static_cast<std::uint64_t>(width * width);
    const auto lengthPrefix = [](unsigned field, std::uint64_t length) {
        std::string bytes = Message().varint(field, length).bytes();
        bytes[0] = static_cast<char>(field << 3 | 2); // of type "length-delimited"
        return bytes;
    };
    std::vector<std::string> heads; // of each initializer, up to its raw data
    std::uint64_t graphBytes = 0;
    for (int i = 0; i < layers; ++i) {
        const std::string inner = tensor("w" + std::to_string(i), kF32, {width, width}).bytes() +
                                  lengthPrefix(9, weightBytes);
        heads.push_back(lengthPrefix(5, inner.size() + weightBytes) + inner);
        graphBytes += heads.back().size() + weightBytes;
    }
    GraphParts parts;
    for (int i = 0; i < layers; ++i)
        parts.nodes.push_back(
            node("MatMul", {i == 0 ? "x" : "y" + std::to_string(i - 1), "w" + std::to_string(i)},
                 {"y" + std::to_string(i)}));
    parts.inputs = {value("x", kF32, {"8", std::to_string(width)})};
    parts.outputs = {Message().text(1, "y" + std::to_string(layers - 1))};
    const std::string nodes = parts.message().bytes();
    graphBytes += nodes.size();

    std::ofstream file(path, std::ios::binary);
    file << Message().integer(1, 8).message(8, opset(17)).bytes() << lengthPrefix(7, graphBytes)
         << nodes;
    for (const std::string& head : heads) {
        file << head;
        file.seekp(static_cast<std::streamoff>(weightBytes), std::ios::cur);
    }
    file.close();
    // The last hole has nothing behind it.
    const std::uint64_t size = Message().integer(1, 8).message(8, opset(17)).bytes().size() +
                               lengthPrefix(7, graphBytes).size() + graphBytes;
    std::filesystem::resize_file(path, size);
    return size;
}

/// Bytes of memory of this process that no file backs.
inline double privateBytes() {
    std::ifstream status("/proc/self/status");
    for (std::string key; status >> key;) {
        double kibibytes = 0;
        if (key == "RssAnon:" && status >> kibibytes) return kibibytes * 1024;
    }
    return 0;
}

} // namespace shardlens::test
