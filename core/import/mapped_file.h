// SPDX-License-Identifier: Apache-2.0
// A file mapped read-only into memory. Model files run to gigabytes of weights that nobody here
// reads: a mapping costs address space only, and pages that are never touched are never loaded.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace shardlens {

class MappedFile {
public:
    /// @throws InputError when the path is no regular file, cannot be read, or is empty
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const noexcept { return m_bytes; }

private:
    std::span<const std::byte> m_bytes;
};

} // namespace shardlens
