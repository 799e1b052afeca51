// SPDX-License-Identifier: Apache-2.0
// See panel_area.h.
#include "ui/panels/panel_area.h"

#include <QEvent>
#include <QLayout>

namespace shardlens {

namespace {

constexpr int kLeastLines = 6;

} // namespace

PanelArea::PanelArea(QWidget* panel, QWidget* parent) : QScrollArea(parent) {
    setWidget(panel);
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::NoFocus);
    panel->installEventFilter(this);
    keepHeight();
}

QSize PanelArea::minimumSizeHint() const {
    return {widget()->minimumSizeHint().width(), kLeastLines * fontMetrics().height()};
}

QSize PanelArea::sizeHint() const {
    return widget()->sizeHint();
}

bool PanelArea::eventFilter(QObject* watched, QEvent* event) {
    if (watched == widget() &&
        (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest))
        keepHeight();
    return QScrollArea::eventFilter(watched, event);
}

void PanelArea::keepHeight() {
    const QLayout* layout = widget()->layout();
    if (layout && layout->hasHeightForWidth())
        widget()->setMinimumHeight(layout->minimumHeightForWidth(widget()->width()));
}

} // namespace shardlens
