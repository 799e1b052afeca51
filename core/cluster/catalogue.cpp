// SPDX-License-Identifier: Apache-2.0
// Reads the three tables of resources/hardware. A figure is a number with a unit; the tables below
// name the figures of a device and of a link and the units they may be given in.
#include "core/cluster/catalogue.h"

#include "core/cluster/catalogue_data.h"
#include "core/cluster/csv.h"
#include "core/error.h"
#include "core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <span>

namespace shardlens {

namespace {

/// A figure of an item of type T: where it goes, its unit, and what the unit is worth.
template <typename T>
struct Figure {
    std::string_view name;
    std::string_view unit;
    double scale;
    double T::* target;
    bool required;
};

constexpr std::array kDeviceFigures{
    Figure<Device>{"matrix_16", "TFLOP/s", 1e12, &Device::matrixFlops16, true},
    Figure<Device>{"matrix_8", "TFLOP/s", 1e12, &Device::matrixFlops8, false},
    Figure<Device>{"vector_32", "TFLOP/s", 1e12, &Device::vectorFlops32, false},
    Figure<Device>{"memory", "GiB", kGiB, &Device::memoryBytes, true},
    Figure<Device>{"memory_bandwidth", "GB/s", 1e9, &Device::memoryBandwidth, true},
};

constexpr std::array kLinkFigures{
    Figure<Link>{"bandwidth", "GB/s", 1e9, &Link::bandwidth, true},
    Figure<Link>{"latency", "us", 1e-6, &Link::latency, true},
};

template <typename Number>
Number positiveNumber(std::string_view text, const std::string& where) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value > Number{})) {
        throw InputError(fmt::format("\"{}\" is not a positive number", text), where,
                         "write plain digits, with a point for decimals");
    }
    return value;
}

/// Adds a text to a list of texts parted by "; ", unless it is there already.
void addDistinct(std::string& list, std::string_view text) {
    if (list.find(text) != std::string::npos) return;
    if (!list.empty()) list += "; ";
    list += text;
}

void noteOrigin(Device& device, std::string_view source, std::string_view sureness) {
    addDistinct(device.source, source);
    addDistinct(device.sureness, sureness);
}

void noteOrigin(Link& link, std::string_view source, std::string_view sureness) {
    addDistinct(link.source, fmt::format("{} ({})", source, sureness));
}

template <typename T>
const Figure<T>& figureByName(std::span<const Figure<T>> figures, std::string_view name,
                              const std::string& where) {
    const auto found = std::ranges::find(figures, name, &Figure<T>::name);
    if (found != figures.end()) return *found;
    std::vector<std::string_view> names;
    std::ranges::transform(figures, std::back_inserter(names), &Figure<T>::name);
    throw InputError(fmt::format("unknown figure \"{}\"", name), where,
                     fmt::format("the figures are: {}", fmt::join(names, ", ")));
}

/// Reads a table of one figure a row.
template <typename T>
std::map<std::string, T, std::less<>> readItems(const CsvTable& table,
                                                std::span<const Figure<T>> figures) {
    const std::size_t item = table.column("item"), name = table.column("figure"),
                      value = table.column("value"), unit = table.column("unit"),
                      source = table.column("source"), sureness = table.column("sureness");
    std::map<std::string, T, std::less<>> items;
    for (const CsvTable::Row& row : table.rows) {
        const std::string where = table.where(row);
        const Figure<T>& figure = figureByName(figures, row.fields[name], where);
        if (row.fields[unit] != figure.unit) {
            throw InputError(fmt::format("{} is given in \"{}\"", figure.name, row.fields[unit]),
                             where, fmt::format("give it in {}", figure.unit));
        }
        T& entry = items[row.fields[item]];
        entry.name = row.fields[item];
        double& target = entry.*figure.target;
        if (target != 0) {
            throw InputError(fmt::format("{} of {} is given twice", figure.name, entry.name), where,
                             "keep one of the rows");
        }
        target = positiveNumber<double>(row.fields[value], where) * figure.scale;
        noteOrigin(entry, row.fields[source], row.fields[sureness]);
    }
    for (const auto& [key, entry] : items) {
        for (const Figure<T>& figure : figures) {
            if (!figure.required || entry.*figure.target != 0) continue;
            throw InputError(fmt::format("{} has no {}", key, figure.name), table.name,
                             "add a row for it");
        }
    }
    return items;
}

template <typename T>
const T& itemByName(const std::map<std::string, T, std::less<>>& items, const std::string& name,
                    std::string_view kind, const std::string& where) {
    const auto found = items.find(name);
    if (found != items.end()) return found->second;
    throw InputError(fmt::format("unknown {} \"{}\"", kind, name), where,
                     fmt::format("describe it in {}s.csv", kind));
}

std::vector<Cluster> readClusters(const CsvTable& table, const Catalogue& parts) {
    const std::size_t name = table.column("name"), description = table.column("description"),
                      device = table.column("device"), count = table.column("devices_per_node"),
                      up = table.column("scale_up"), out = table.column("scale_out");
    std::vector<Cluster> clusters;
    std::set<std::string, std::less<>> names;
    for (const CsvTable::Row& row : table.rows) {
        const std::string where = table.where(row);
        if (!names.insert(row.fields[name]).second) {
            throw InputError(fmt::format("cluster {} is given twice", row.fields[name]), where,
                             "keep one of the rows");
        }
        Cluster cluster;
        cluster.name = row.fields[name];
        cluster.description = row.fields[description];
        cluster.device = itemByName(parts.devices, row.fields[device], "device", where);
        cluster.devicesPerNode = positiveNumber<int>(row.fields[count], where);
        cluster.scaleUp = itemByName(parts.links, row.fields[up], "link", where);
        cluster.scaleOut = itemByName(parts.links, row.fields[out], "link", where);
        clusters.push_back(std::move(cluster));
    }
    return clusters;
}

} // namespace

Catalogue parseCatalogue(std::string_view devicesCsv, std::string_view linksCsv,
                         std::string_view clustersCsv) {
    Catalogue catalogue;
    catalogue.devices =
        readItems<Device>(parseCsv(devicesCsv, "devices.csv"), std::span(kDeviceFigures));
    catalogue.links = readItems<Link>(parseCsv(linksCsv, "links.csv"), std::span(kLinkFigures));
    catalogue.clusters = readClusters(parseCsv(clustersCsv, "clusters.csv"), catalogue);
    return catalogue;
}

const Catalogue& builtinCatalogue() {
    static const Catalogue catalogue = parseCatalogue(
        catalogue_data::devicesCsv, catalogue_data::linksCsv, catalogue_data::clustersCsv);
    return catalogue;
}

} // namespace shardlens
