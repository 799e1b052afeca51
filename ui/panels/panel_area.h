// SPDX-License-Identifier: Apache-2.0
// Room for a panel that may be higher than its dock: it scrolls, and is never squeezed below what
// its wrapped texts take at its width (a layout's own minimum knows only their shortest line).
#pragma once

#include <QScrollArea>

namespace shardlens {

class PanelArea : public QScrollArea {
    Q_OBJECT

public:
    explicit PanelArea(QWidget* panel, QWidget* parent = nullptr);
    QSize minimumSizeHint() const override;
    QSize sizeHint() const override;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void keepHeight();
};

} // namespace shardlens
