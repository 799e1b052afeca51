// SPDX-License-Identifier: Apache-2.0
// Every colour of the window, light and dark, in one place. Categories use the palette of Okabe and
// Ito ("Color Universal Design", 2008), which stays apart for all common kinds of colour blindness;
// quantities use viridis (Smith and van der Walt, matplotlib 2015), turned round on light ground so
// that "more" always stands out more. Colour is never the only cue: axes carry their names and a
// hatch, a partial sum its sigma.
#pragma once

#include <QBrush>
#include <QColor>
#include <QPalette>

#include <array>

class QWidget;

namespace shardlens {

/// An answer that is replaced sooner than this is not marked as stale: it would only flicker.
constexpr int kStaleDelayMilliseconds = 150;

/// What the user asked for in the View menu.
enum class ThemeMode { System, Light, Dark };

/// Groups of op kinds that share a stripe colour.
enum class OpFamily { Contraction, Attention, Vector, View, Source, Opaque };

class Palette {
public:
    static const Palette& light();
    static const Palette& dark();
    /// The one that fits a widget's own palette.
    static const Palette& of(const QWidget* widget);
    static const Palette& of(const QPalette& palette);
    static bool isDark(const QPalette& palette);

    bool dark_ = false;
    QColor canvas;  ///< ground of the painted views
    QColor frame;   ///< ground of an opened block
    QColor surface; ///< boxes
    QColor border;
    QColor text;
    QColor muted;     ///< secondary text, edges
    QColor faint;     ///< hairlines, empty cells
    QColor accent;    ///< selection, links
    QColor highlight; ///< search matches
    QColor good, warning, bad;
    QColor pin;

    /// Colour of mesh axis 0 .. 3.
    QColor axis(std::size_t index) const;
    /// Second cue of a mesh axis: a brush with its colour and a hatch of its own.
    QBrush axisHatch(std::size_t index) const;
    QColor family(OpFamily family) const;
    /// Sequential scale, 0 (least) .. 1 (most).
    QColor scale(double fraction) const;
    /// Distinct colours for device groups and pie slices, cyclic.
    QColor category(std::size_t index) const;
    /// Colour of one of `count` numbered things: distinct for few, else along the scale.
    QColor numbered(std::size_t index, std::size_t count) const;
    /// `amount` of `over` laid over `ground`.
    static QColor mix(const QColor& ground, const QColor& over, double amount);
    /// Text colour with the better contrast on a ground (WCAG relative luminance).
    QColor textOn(const QColor& ground) const;
    /// WCAG 2 contrast ratio, 1 .. 21.
    static double contrast(const QColor& a, const QColor& b);

    /// The same colours for ordinary widgets.
    QPalette widgetPalette() const;

private:
    std::array<QColor, 8> m_categories;
};

/// Makes the application follow a mode. System looks at the platform's own palette.
void applyTheme(ThemeMode mode);

} // namespace shardlens
