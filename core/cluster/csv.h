// SPDX-License-Identifier: Apache-2.0
// A reader of RFC 4180 CSV with a header line: the format of the hardware catalogue. Fields may be
// quoted and may then hold commas, line breaks and doubled quotes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

struct CsvTable {
    struct Row {
        std::size_t line = 0; ///< line of the file where the row starts, from 1
        std::vector<std::string> fields;
    };

    std::string name; ///< for error messages
    std::vector<std::string> header;
    std::vector<Row> rows; ///< each as long as the header

    /// @throws InputError if there is no such column
    std::size_t column(std::string_view title) const;
    std::string where(const Row& row) const; ///< "links.csv, line 3"
};

/// @param name of the file, for error messages
/// @throws InputError naming the line: ragged row, stray or unclosed quote, empty text
CsvTable parseCsv(std::string_view text, std::string name);

} // namespace shardlens
