// SPDX-License-Identifier: Apache-2.0
// How tables of panels look and behave: rows chosen one at a time, first column as wide as it can.
#pragma once

class QAbstractItemModel;
class QTableView;

namespace shardlens {

void setUpTable(QTableView* table, QAbstractItemModel* model);

} // namespace shardlens
