// SPDX-License-Identifier: Apache-2.0
// Where nodes and devices of a mesh lie on a page. Few devices are laid out to be read, with a
// headline over each node and columns that follow the innermost mesh axis; many as square tiles,
// a node each, which are looked into by zooming. Pure.
#pragma once

#include <QRectF>

#include <vector>

namespace shardlens {

struct MeshGeometry {
    std::vector<QRectF> nodes, devices; ///< page coordinates, in order
    int devicesPerNode = 1, nodeColumns = 1;
    double headline = 0; ///< height over the devices of a node; 0 if there is one node only

    bool isEmpty() const { return devices.empty(); }
    /// Whether devices are large enough to be told apart, enlarged so many times.
    bool showsDevices(double zoom) const;
    double mostZoom() const; ///< beyond which nothing more is to be seen; at least 1
    int nodeOf(int device) const { return device / devicesPerNode; }
    /// First device of a node and the one after its last.
    std::pair<int, int> devicesOf(int node) const;
    int deviceAt(QPointF page) const; ///< -1: none
    int nodeAt(QPointF page) const;   ///< -1: none
};

/// @param inner size of the innermost axis  @param headline height of a line of text
MeshGeometry placeMesh(int devices, int devicesPerNode, int inner, QSizeF page, double headline);

} // namespace shardlens
