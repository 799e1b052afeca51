// SPDX-License-Identifier: Apache-2.0
// Members of a ZIP archive in memory, by its central directory (PKWARE APPNOTE 6.3.10): stored or
// deflated, with the ZIP64 fields that large archives have. Sizes are checked before anything is
// unpacked, and names that lead out of the archive are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

class ZipArchive {
public:
    struct Entry {
        std::string name;
        std::uint64_t offset = 0; ///< of the local header
        std::uint64_t packed = 0, size = 0;
        std::uint32_t checksum = 0;
        std::uint16_t method = 0; ///< 0 stored, 8 deflated
    };

    /// @param where names the file in messages
    /// @throws InputError when there is no directory, or it is damaged, encrypted or hostile
    ZipArchive(std::span<const std::byte> file, std::string where);

    const std::vector<Entry>& entries() const { return m_entries; }
    /// The content of a member. @throws InputError when it is larger than `limit`, or damaged
    std::string read(const Entry& entry, std::uint64_t limit,
                     const std::stop_token& stop = {}) const;

private:
    std::span<const std::byte> m_file;
    std::string m_where;
    std::vector<Entry> m_entries;
};

} // namespace shardlens
