// SPDX-License-Identifier: Apache-2.0
// See table_style.h.
#include "ui/panels/table_style.h"

#include <QHeaderView>
#include <QTableView>

namespace shardlens {

void setUpTable(QTableView* table, QAbstractItemModel* model) {
    table->setModel(model);
    table->verticalHeader()->hide();
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
    table->horizontalHeader()->setHighlightSections(false);
    table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setSelectionMode(QAbstractItemView::SingleSelection);
    table->setShowGrid(false);
    table->setAlternatingRowColors(true);
    table->setTabKeyNavigation(false);
    table->setTextElideMode(Qt::ElideMiddle);
}

} // namespace shardlens
