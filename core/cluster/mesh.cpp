// SPDX-License-Identifier: Apache-2.0
// Logical meshes: their text form and how their axes lie on a cluster's links. Devices are numbered
// node by node, and the last axis is innermost, so that an axis of size k over inner axes of i
// devices together joins devices i apart.
#include "core/cluster/cluster.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>

namespace shardlens {

namespace {

constexpr int kLargestTensorAxis = 8; // beyond it collectives and small shards eat the gain

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

bool isName(std::string_view text) {
    return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
           std::ranges::all_of(text, [](char c) {
               return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
           });
}

void checkAxes(const std::vector<AxisSize>& axes) {
    if (axes.size() > kMaxMeshAxes) {
        throw PlanError(fmt::format("the mesh has {} axes", axes.size()), {},
                        fmt::format("use at most {}", kMaxMeshAxes));
    }
    for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
        if (!isName(axis->name)) {
            throw PlanError(fmt::format("\"{}\" is not the name of a mesh axis", axis->name), {},
                            "use letters, digits and _, as in dp=8,tp=8");
        }
        if (axis->size < 1) {
            throw PlanError(fmt::format("mesh axis {} has size {}", axis->name, axis->size), {},
                            "give it a size of at least 1");
        }
        if (std::ranges::find(axes.begin(), axis, axis->name, &AxisSize::name) != axis) {
            throw PlanError(fmt::format("mesh axis {} is given twice", axis->name), {},
                            "give each axis a name of its own");
        }
    }
}

/// Devices that reach each other over the scale-up link. Nodes that are joined by the same link as
/// their devices (TPU slices) are one domain.
int scaleUpDomain(const Cluster& cluster) {
    return cluster.scaleUp.name == cluster.scaleOut.name ? cluster.devices()
                                                         : cluster.devicesPerNode;
}

/// The fewest members that a group of an axis has in one node, over all groups that span nodes;
/// 0 if none does.
int fewestMembersPerNode(int devices, int domain, int size, int inner) {
    int fewest = 0;
    for (int block = 0; block < devices; block += inner * size) {
        for (int first = block; first < block + inner; ++first) {
            const auto nodeOf = [&](int member) { return (first + inner * member) / domain; };
            if (nodeOf(0) == nodeOf(size - 1)) continue;
            for (int member = 0; member < size;) {
                const int begin = member;
                while (member < size && nodeOf(member) == nodeOf(begin)) ++member;
                fewest = fewest == 0 ? member - begin : std::min(fewest, member - begin);
            }
        }
    }
    return fewest;
}

MeshAxis layAxis(const Cluster& cluster, const AxisSize& axis, int inner) {
    const int domain = scaleUpDomain(cluster);
    const int members = fewestMembersPerNode(cluster.devices(), domain, axis.size, inner);
    if (members == 0) return {axis.name, axis.size, cluster.scaleUp, false};
    // All rings of the axis run at once: each uses the adapters of its own members in the node.
    Link link = cluster.scaleOut;
    link.bandwidth = std::min(cluster.scaleUp.bandwidth, members * cluster.scaleOut.bandwidth);
    return {axis.name, axis.size, std::move(link), true};
}

} // namespace

int Mesh::devices() const {
    return std::accumulate(axes.begin(), axes.end(), 1,
                           [](int product, const MeshAxis& axis) { return product * axis.size; });
}

int Mesh::axisIndex(std::string_view name) const {
    const auto found = std::ranges::find(axes, name, &MeshAxis::name);
    return found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
}

std::string Mesh::toString() const {
    std::string text;
    for (const MeshAxis& axis : axes)
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
    return text;
}

std::vector<int> Mesh::coordinates(int device) const {
    std::vector<int> at(axes.size());
    for (std::size_t a = axes.size(); a-- > 0;) {
        at[a] = device % axes[a].size;
        device /= axes[a].size;
    }
    return at;
}

std::vector<AxisSize> parseMesh(std::string_view text) {
    std::vector<AxisSize> axes;
    for (std::string_view rest = text;;) {
        const std::size_t comma = rest.find(',');
        const std::string_view part = trimmed(rest.substr(0, comma));
        const std::size_t equals = std::min(part.find('='), part.size());
        const std::string_view number = trimmed(part.substr(std::min(equals + 1, part.size())));
        AxisSize axis{std::string(trimmed(part.substr(0, equals))), 0};
        const char* const begin = number.data();
        const char* const end = begin + number.size();
        const auto [stop, error] = std::from_chars(begin, end, axis.size);
        if (error != std::errc{} || stop != end) {
            throw PlanError(fmt::format("\"{}\" is not of the form name=size", part),
                            fmt::format("mesh \"{}\"", text), "write it as in dp=8,tp=8");
        }
        axes.push_back(std::move(axis));
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    checkAxes(axes);
    return axes;
}

Mesh layMesh(const Cluster& cluster, const std::vector<AxisSize>& axes) {
    checkAxes(axes);
    double product = 1; // of any axes, without overflow
    for (const AxisSize& axis : axes) product *= axis.size;
    if (product != cluster.devices()) {
        throw PlanError(fmt::format("the mesh has {:.0f} devices and the cluster {}", product,
                                    cluster.devices()),
                        fmt::format("{} x {}", cluster.nodes, cluster.name),
                        "make the product of the axes equal to the devices of the cluster");
    }
    Mesh mesh;
    int inner = cluster.devices();
    for (const AxisSize& axis : axes) {
        inner /= axis.size;
        mesh.axes.push_back(layAxis(cluster, axis, inner));
    }
    return mesh;
}

std::vector<AxisSize> defaultMesh(const Cluster& cluster) {
    const int tensor = std::gcd(cluster.devicesPerNode, kLargestTensorAxis);
    return {{"dp", cluster.devices() / tensor}, {"tp", tensor}};
}

} // namespace shardlens
