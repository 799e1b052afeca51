// SPDX-License-Identifier: Apache-2.0
// One pass over the characters, a record at a time (RFC 4180 section 2).
#include "core/cluster/csv.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens {

namespace {

class CsvReader {
public:
    CsvReader(std::string_view text, std::string_view name) : m_rest(text), m_name(name) {}

    bool atEnd() const { return m_rest.empty(); }

    CsvTable::Row record() {
        CsvTable::Row row{m_line, {}};
        do {
            row.fields.push_back(!atEnd() && m_rest.front() == '"' ? inQuotes() : plain());
        } while (take(','));
        take('\r');
        if (!atEnd() && !take('\n')) fail("a quoted field goes on after its closing quote");
        ++m_line;
        return row;
    }

private:
    bool take(char c) {
        if (atEnd() || m_rest.front() != c) return false;
        m_rest.remove_prefix(1);
        return true;
    }

    std::string plain() {
        const std::size_t end = std::min(m_rest.find_first_of(",\r\n"), m_rest.size());
        std::string field(m_rest.substr(0, end));
        if (field.find('"') != std::string::npos) fail("a quote stands inside an unquoted field");
        m_rest.remove_prefix(end);
        return field;
    }

    std::string inQuotes() {
        std::string field;
        take('"');
        while (!atEnd()) {
            if (take('"')) {
                if (!take('"')) return field;
                field += '"';
                continue;
            }
            if (m_rest.front() == '\n') ++m_line;
            field += m_rest.front();
            m_rest.remove_prefix(1);
        }
        fail("a quoted field is not closed");
    }

    [[noreturn]] void fail(std::string problem) const {
        throw InputError(std::move(problem), fmt::format("{}, line {}", m_name, m_line),
                         "quote a field that holds commas or quotes, and double its quotes");
    }

    std::string_view m_rest;
    std::string_view m_name;
    std::size_t m_line = 1;
};

} // namespace

std::size_t CsvTable::column(std::string_view title) const {
    const auto found = std::ranges::find(header, title);
    if (found == header.end()) {
        throw InputError(fmt::format("there is no column \"{}\"", title), name,
                         fmt::format("the columns are: {}", fmt::join(header, ", ")));
    }
    return static_cast<std::size_t>(found - header.begin());
}

std::string CsvTable::where(const Row& row) const {
    return fmt::format("{}, line {}", name, row.line);
}

CsvTable parseCsv(std::string_view text, std::string name) {
    CsvTable table{std::move(name), {}, {}};
    CsvReader reader(text, table.name);
    if (reader.atEnd()) throw InputError("the file is empty", table.name, "start with a header");
    table.header = reader.record().fields;
    while (!reader.atEnd()) {
        CsvTable::Row row = reader.record();
        if (row.fields.size() != table.header.size()) {
            throw InputError(fmt::format("the row has {} fields and the header {}",
                                         row.fields.size(), table.header.size()),
                             table.where(row), "give every column a field, empty if need be");
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

} // namespace shardlens
