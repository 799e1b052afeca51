// SPDX-License-Identifier: Apache-2.0
// See submesh.h.
#include "core/plan/planners/submesh.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace shardlens {

namespace {

constexpr int kSmall = 4; // hosts of the largest "small" submesh

bool isPowerOfTwo(int n) {
    return n > 0 && std::has_single_bit(static_cast<unsigned>(n));
}

void checkCluster(int hosts, int devicesPerHost) {
    if (hosts < 1) throw PlanError(fmt::format("a cluster of {} hosts is not possible", hosts));
    if (!isPowerOfTwo(devicesPerHost))
        throw PlanError(fmt::format("a host has {} devices", devicesPerHost), "submeshes",
                        "use a power of two of each host's devices");
}

bool offered(int hosts, int n, SubmeshSpace space) {
    switch (space) {
    case SubmeshSpace::All:
        return true;
    case SubmeshSpace::PowerOfTwo:
        return isPowerOfTwo(n) || n == hosts;
    case SubmeshSpace::SmallPowerOfTwo:
        return isPowerOfTwo(n) && n <= kSmall;
    }
    return false;
}

void checkShape(int hosts, int devicesPerHost, const Submesh& shape) {
    const bool part = shape.hosts == 1 && isPowerOfTwo(shape.devicesPerHost) &&
                      shape.devicesPerHost <= devicesPerHost;
    const bool whole =
        shape.hosts >= 1 && shape.hosts <= hosts && shape.devicesPerHost == devicesPerHost;
    if (!part && !whole)
        throw PlanError(fmt::format("{} x {} is no submesh of {} x {}", shape.hosts,
                                    shape.devicesPerHost, hosts, devicesPerHost),
                        "submeshes", "a stage has a power of two of one host, or whole hosts");
}

} // namespace

std::vector<Submesh> submeshes(int hosts, int devicesPerHost, SubmeshSpace space) {
    checkCluster(hosts, devicesPerHost);
    std::vector<Submesh> shapes;
    for (int n = 1; n <= devicesPerHost; n *= 2) shapes.push_back({1, n});
    for (int n = 2; n <= hosts; ++n)
        if (offered(hosts, n, space)) shapes.push_back({n, devicesPerHost});
    return shapes;
}

std::vector<LogicalShape> logicalShapes(const Submesh& submesh, std::int64_t microBatch,
                                        LogicalSpace space) {
    const int n = submesh.devices();
    const int most = space == LogicalSpace::All ? n : submesh.devicesPerHost;
    std::vector<LogicalShape> shapes;
    for (int model = 1; model <= most; ++model)
        if (n % model == 0 && microBatch % (n / model) == 0) shapes.push_back({n / model, model});
    if (n > 1 && microBatch % n == 0) shapes.push_back({n, 1, false});
    return shapes;
}

bool Placement::contains(int atHost, int atDevice) const {
    return atHost >= host && atHost < host + submesh.hosts && atDevice >= device &&
           atDevice < device + submesh.devicesPerHost;
}

std::vector<Placement> placeSubmeshes(int hosts, int devicesPerHost,
                                      std::span<const Submesh> shapes) {
    checkCluster(hosts, devicesPerHost);
    std::vector<std::size_t> order(shapes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t i) { return shapes[i].devices(); });
    std::vector<Placement> placed(shapes.size());
    int host = 0, device = 0;
    for (const std::size_t i : order) {
        const Submesh& shape = shapes[i];
        checkShape(hosts, devicesPerHost, shape);
        placed[i] = {host, device, shape};
        if (shape.devicesPerHost == devicesPerHost) {
            host += shape.hosts;
        } else { // sizes fall, so that each one divides what is left of the host
            device += shape.devicesPerHost;
            host += device / devicesPerHost;
            device %= devicesPerHost;
        }
    }
    if (host > hosts || (host == hosts && device > 0))
        throw PlanError(
            fmt::format("the submeshes need more than {} x {} devices", hosts, devicesPerHost),
            "submeshes", "take fewer or smaller ones");
    return placed;
}

} // namespace shardlens
