// SPDX-License-Identifier: Apache-2.0
// See message_bar.h.
#include "ui/panels/message_bar.h"

#include "ui/theme.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QStyle>
#include <QToolButton>

namespace shardlens {

MessageBar::MessageBar(QWidget* parent)
    : QFrame(parent), m_icon(new QLabel(this)), m_label(new QLabel(this)),
      m_close(new QToolButton(this)) {
    setObjectName(QStringLiteral("messageBar"));
    setAccessibleName(tr("Message"));
    m_label->setObjectName(QStringLiteral("messageText"));
    m_label->setWordWrap(true);
    m_label->setTextFormat(Qt::PlainText);
    m_label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_close->setObjectName(QStringLiteral("messageClose"));
    m_close->setAccessibleName(tr("Close message"));
    m_close->setToolTip(tr("Close message"));
    m_close->setAutoRaise(true);
    m_close->setText(QStringLiteral("✕"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 6, 6, 6);
    layout->addWidget(m_icon);
    layout->addWidget(m_label, 1);
    layout->addWidget(m_close, 0, Qt::AlignTop);
    connect(m_close, &QToolButton::clicked, this, &QWidget::hide);
    hide();
}

void MessageBar::showMessage(MessageKind kind, const QString& text) {
    m_kind = kind;
    m_icon->setText(kind == MessageKind::Error     ? QStringLiteral("✖")
                    : kind == MessageKind::Warning ? QStringLiteral("⚠")
                                                   : QStringLiteral("ℹ"));
    m_label->setText(text);
    setAccessibleDescription(text);
    show();
    update();
}

QString MessageBar::text() const {
    return m_label->text();
}

void MessageBar::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) update();
}

void MessageBar::paintEvent(QPaintEvent*) {
    const Palette& palette = Palette::of(this);
    const QColor colour = m_kind == MessageKind::Error     ? palette.bad
                          : m_kind == MessageKind::Warning ? palette.warning
                                                           : palette.accent;
    QPainter painter(this);
    painter.fillRect(rect(), Palette::mix(palette.surface, colour, 0.12));
    painter.fillRect(QRect(0, 0, 4, height()), colour);
    painter.setPen(Palette::mix(palette.surface, colour, 0.4));
    painter.drawLine(rect().bottomLeft(), rect().bottomRight());
}

} // namespace shardlens
