// SPDX-License-Identifier: Apache-2.0
// See theme.h. The only file with literal colours.
#include "ui/theme.h"

#include <QApplication>
#include <QWidget>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

// Eleven equidistant samples of viridis.
constexpr std::array<QRgb, 11> kViridis = {0xff440154, 0xff482475, 0xff414487, 0xff355f8d,
                                           0xff2a788e, 0xff21918c, 0xff22a884, 0xff44bf70,
                                           0xff7ad151, 0xffbddf26, 0xfffde725};

double channel(double value) {
    return value <= 0.03928 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance(const QColor& colour) {
    return 0.2126 * channel(colour.redF()) + 0.7152 * channel(colour.greenF()) +
           0.0722 * channel(colour.blueF());
}

} // namespace

const Palette& Palette::light() {
    static const Palette palette = [] {
        Palette p;
        p.dark_ = false;
        p.canvas = QColor(0xf7f8fa);
        p.frame = QColor(0xeef1f5);
        p.surface = QColor(0xffffff);
        p.border = QColor(0xb6bdc8);
        p.text = QColor(0x1c2430);
        p.muted = QColor(0x5a6575);
        p.faint = QColor(0xdde1e8);
        p.accent = QColor(0x0067a3);
        p.highlight = QColor(0xf0c419);
        p.good = QColor(0x00734f);
        p.warning = QColor(0x9a5b00);
        p.bad = QColor(0xb03a00);
        p.pin = QColor(0x9c3f78);
        p.m_categories = {QColor(0x0072b2), QColor(0xe69f00), QColor(0x009e73), QColor(0xcc79a7),
                          QColor(0x56b4e9), QColor(0xd55e00), QColor(0xf0e442), QColor(0x7f8794)};
        return p;
    }();
    return palette;
}

const Palette& Palette::dark() {
    static const Palette palette = [] {
        Palette p;
        p.dark_ = true;
        p.canvas = QColor(0x16191e);
        p.frame = QColor(0x1d2127);
        p.surface = QColor(0x272c34);
        p.border = QColor(0x515b69);
        p.text = QColor(0xe8ebf0);
        p.muted = QColor(0xa4aebc);
        p.faint = QColor(0x353b45);
        p.accent = QColor(0x62bbee);
        p.highlight = QColor(0xf0c419);
        p.good = QColor(0x3fcf9f);
        p.warning = QColor(0xf2b33d);
        p.bad = QColor(0xff8a50);
        p.pin = QColor(0xe29ac4);
        p.m_categories = {QColor(0x56b4e9), QColor(0xe69f00), QColor(0x19b88a), QColor(0xd68bb4),
                          QColor(0x3d8fd1), QColor(0xe0702a), QColor(0xf0e442), QColor(0x98a1ae)};
        return p;
    }();
    return palette;
}

bool Palette::isDark(const QPalette& palette) {
    return luminance(palette.color(QPalette::Window)) <
           luminance(palette.color(QPalette::WindowText));
}

const Palette& Palette::of(const QPalette& palette) {
    return isDark(palette) ? dark() : light();
}

const Palette& Palette::of(const QWidget* widget) {
    return of(widget->palette());
}

QColor Palette::axis(std::size_t index) const {
    return m_categories[std::min<std::size_t>(index, 3)];
}

QBrush Palette::axisHatch(std::size_t index) const {
    static constexpr std::array<Qt::BrushStyle, 4> kHatches = {Qt::FDiagPattern, Qt::HorPattern,
                                                               Qt::BDiagPattern, Qt::VerPattern};
    return QBrush(axis(index), kHatches[std::min<std::size_t>(index, 3)]);
}

QColor Palette::family(OpFamily family) const {
    switch (family) {
    case OpFamily::Contraction:
        return m_categories[0];
    case OpFamily::Attention:
        return m_categories[3];
    case OpFamily::Vector:
        return m_categories[2];
    case OpFamily::View:
        return border;
    case OpFamily::Source:
        return m_categories[4];
    case OpFamily::Opaque:
        return m_categories[5];
    }
    return border;
}

QColor Palette::scale(double fraction) const {
    if (!std::isfinite(fraction)) fraction = 0;
    fraction = std::clamp(fraction, 0.0, 1.0);
    if (!dark_) fraction = 1.0 - fraction;
    const double place = fraction * (kViridis.size() - 1);
    const auto low = std::min(static_cast<std::size_t>(place), kViridis.size() - 2);
    return mix(QColor(kViridis[low]), QColor(kViridis[low + 1]), place - static_cast<double>(low));
}

QColor Palette::category(std::size_t index) const {
    return m_categories[index % m_categories.size()];
}

QColor Palette::numbered(std::size_t index, std::size_t count) const {
    if (count <= m_categories.size()) return category(index);
    return scale(static_cast<double>(index) / static_cast<double>(count - 1));
}

QColor Palette::mix(const QColor& ground, const QColor& over, double amount) {
    const auto blend = [amount](float a, float b) {
        return static_cast<float>(std::clamp(a + (b - a) * amount, 0.0, 1.0));
    };
    return QColor::fromRgbF(blend(ground.redF(), over.redF()),
                            blend(ground.greenF(), over.greenF()),
                            blend(ground.blueF(), over.blueF()));
}

double Palette::contrast(const QColor& a, const QColor& b) {
    const double first = luminance(a), second = luminance(b);
    return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

QColor Palette::textOn(const QColor& ground) const {
    // Of black and white one always reaches 4.58 : 1, whatever the ground (WCAG 2 contrast).
    const QColor ink(Qt::black), paper(Qt::white);
    return contrast(ground, ink) >= contrast(ground, paper) ? ink : paper;
}

QPalette Palette::widgetPalette() const {
    QPalette p;
    const QColor window = dark_ ? QColor(0x20242a) : QColor(0xf1f3f6);
    const QColor button = dark_ ? QColor(0x2f353e) : QColor(0xf8f9fb);
    p.setColor(QPalette::Window, window);
    p.setColor(QPalette::WindowText, text);
    p.setColor(QPalette::Base, dark_ ? QColor(0x1a1d22) : QColor(0xffffff));
    p.setColor(QPalette::AlternateBase, dark_ ? QColor(0x20242a) : QColor(0xf5f7fa));
    p.setColor(QPalette::Text, text);
    p.setColor(QPalette::PlaceholderText, muted);
    p.setColor(QPalette::Button, button);
    p.setColor(QPalette::ButtonText, text);
    p.setColor(QPalette::BrightText, bad);
    p.setColor(QPalette::ToolTipBase, surface);
    p.setColor(QPalette::ToolTipText, text);
    p.setColor(QPalette::Highlight, dark_ ? QColor(0x1f6fa3) : QColor(0x0067a3));
    p.setColor(QPalette::HighlightedText, QColor(0xffffff));
    p.setColor(QPalette::Link, accent);
    p.setColor(QPalette::LinkVisited, accent);
    p.setColor(QPalette::Light, dark_ ? QColor(0x3c434e) : QColor(0xffffff));
    p.setColor(QPalette::Midlight, dark_ ? QColor(0x343a44) : QColor(0xe8ebf0));
    p.setColor(QPalette::Mid, dark_ ? QColor(0x454d59) : QColor(0xb9c0ca));
    p.setColor(QPalette::Dark, dark_ ? QColor(0x12151a) : QColor(0x98a1ae));
    p.setColor(QPalette::Shadow, dark_ ? QColor(0x08090b) : QColor(0x6b7480));
    for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText})
        p.setColor(QPalette::Disabled, role, mix(window, text, 0.45));
    return p;
}

void applyTheme(ThemeMode mode) {
    if (mode == ThemeMode::System) {
        QApplication::setPalette(QPalette()); // back to the platform's own
        mode = Palette::isDark(QApplication::palette()) ? ThemeMode::Dark : ThemeMode::Light;
    }
    const Palette& palette = mode == ThemeMode::Dark ? Palette::dark() : Palette::light();
    QApplication::setPalette(palette.widgetPalette());
}

} // namespace shardlens
