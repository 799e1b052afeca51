// SPDX-License-Identifier: Apache-2.0
// Sweeps as JSON, CSV and text; see sweep.h.
#include "core/plan/planners/sweep.h"
#include "core/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shardlens {

namespace {

std::string quoted(const std::string& cell) {
    if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
    std::string result = "\"";
    for (const char c : cell) result += c == '"' ? std::string("\"\"") : std::string(1, c);
    return result + '"';
}

/// Quickest first; rows without a plan last.
std::vector<const SweepRow*> byTime(const SweepTable& table) {
    std::vector<const SweepRow*> order;
    for (const SweepRow& row : table.rows) order.push_back(&row);
    std::ranges::stable_sort(order, {}, [](const SweepRow* row) {
        return std::tuple(!row->error.empty(), !row->fits, row->seconds);
    });
    return order;
}

} // namespace

std::string sweepJson(const SweepTable& table) {
    nlohmann::ordered_json points = nlohmann::ordered_json::array();
    for (const SweepRow& row : table.rows) {
        nlohmann::ordered_json point;
        for (std::size_t c = 0; c < table.settings.size(); ++c)
            std::visit([&](const auto& value) { point[table.settings[c]] = value; }, row.values[c]);
        if (row.error.empty()) {
            point["time_s"] = row.seconds;
            point["memory_bytes"] = row.memory;
            point["bubble"] = row.bubble;
            point["fits"] = row.fits;
            point["front"] = row.front;
        } else {
            point["error"] = row.error;
        }
        points.push_back(std::move(point));
    }
    return nlohmann::ordered_json{{"settings", table.settings},
                                  {"memory_limit_bytes", table.memoryLimit},
                                  {"points", std::move(points)},
                                  {"provenance", "modelled"}}
        .dump();
}

std::string sweepCsv(const SweepTable& table) {
    std::string csv;
    for (const std::string& setting : table.settings) csv += setting + ',';
    csv += "time_s,memory_bytes,bubble,fits,front,error\r\n";
    for (const SweepRow& row : table.rows) {
        for (const SweepValue& value : row.values) csv += quoted(wordOf(value)) + ',';
        csv += row.error.empty() ? fmt::format("{},{},{},{:d},{:d},\r\n", row.seconds, row.memory,
                                               row.bubble, row.fits, row.front)
                                 : ",,,0,0," + quoted(row.error) + "\r\n";
    }
    return csv;
}

std::string sweepText(const SweepTable& table, std::size_t most) {
    const auto fitting = std::ranges::count_if(table.rows, &SweepRow::fits);
    std::string result = fmt::format("{} points, {} fit\n", table.rows.size(), fitting);
    std::vector<std::size_t> width;
    for (std::size_t c = 0; c < table.settings.size(); ++c) {
        std::size_t widest = table.settings[c].size();
        for (const SweepRow& row : table.rows)
            widest = std::max(widest, wordOf(row.values[c]).size());
        width.push_back(widest);
        result += fmt::format("  {:>{}}", table.settings[c], widest);
    }
    result += "        time      memory  bubble\n";
    std::size_t listed = 0;
    for (const SweepRow* row : byTime(table)) {
        const bool planless = !row->error.empty();
        if (!planless && !row->fits) continue;
        if (listed++ >= most && !row->front) continue;
        for (std::size_t c = 0; c < width.size(); ++c)
            result += fmt::format("  {:>{}}", wordOf(row->values[c]), width[c]);
        result += planless ? "  " + row->error
                           : fmt::format("{:>10.4f} s{:>8.1f} GiB{:>7.1f} %{}", row->seconds,
                                         row->memory / kGiB, 100 * row->bubble,
                                         row->front ? "  front" : "");
        result += '\n';
    }
    return result;
}

} // namespace shardlens
