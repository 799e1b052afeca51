// SPDX-License-Identifier: Apache-2.0
// The points of a sweep as a table: settings, then time, memory, bubble and how the point stands.
// Sorting and filtering belong to the model, over keys that are made once (in the background), so
// that ten thousand rows are put in order within a frame.
#pragma once

#include "core/plan/planners/sweep.h"
#include "ui/theme.h"

#include <QAbstractTableModel>

namespace shardlens {

/// What of a sweep is shown as a quantity.
enum class SweepMeasure { Time, Memory, Bubble };
double measureOf(const SweepRow& row, SweepMeasure measure);
QString formatMeasure(double value, SweepMeasure measure); ///< "12.3 ms", "3.21 GiB", "4.2 %"
QString measureName(SweepMeasure measure);

/// A sweep made ready to be shown. Immutable; made in the background.
class SweepData {
public:
    SweepData(SweepTable table, std::vector<SweepAxis> axes, std::vector<GridPoint> points);

    const SweepTable& table() const { return m_table; }
    const SweepRow& row(int row) const { return m_table.rows[static_cast<std::size_t>(row)]; }
    int rows() const { return static_cast<int>(m_table.rows.size()); }
    /// One or two, or none for the grid of all equal-stage plans.
    const std::vector<SweepAxis>& axes() const { return m_axes; }
    const std::vector<GridPoint>& points() const { return m_points; } ///< of the grid, by row
    /// What a column is sorted by. @param column as in SweepModel
    double key(int row, int column) const {
        return m_keys[static_cast<std::size_t>(column)][static_cast<std::size_t>(row)];
    }
    QString title(int column) const; ///< of a column
    /// Rows in the order of a column's keys; equal ones by row, those without a plan last.
    const std::vector<int>& sorted(int column) const {
        return m_sorted[static_cast<std::size_t>(column)];
    }
    /// The words of a row's settings, in small letters, to search in.
    const QString& words(int row) const { return m_words[static_cast<std::size_t>(row)]; }
    QString describe(int row) const; ///< all of a point in a few lines, for tips and screen readers

private:
    void collectWords();
    void sortColumns();

    SweepTable m_table;
    std::vector<SweepAxis> m_axes;
    std::vector<GridPoint> m_points;
    std::vector<std::vector<double>> m_keys; ///< by column
    std::vector<std::vector<int>> m_sorted;  ///< by column
    std::vector<QString> m_words;            ///< by row
};

/// Which points are wanted: words that must all hold ("tp=8", "pp>4", "interleaved"), and switches.
struct SweepFilter {
    QString text;
    bool onlyFitting = false, onlyFront = false;
    friend bool operator==(const SweepFilter&, const SweepFilter&) = default;
};

class SweepModel : public QAbstractTableModel {
    Q_OBJECT

public:
    explicit SweepModel(QObject* parent = nullptr);

    void setSweep(std::shared_ptr<const SweepData> data);
    const std::shared_ptr<const SweepData>& sweep() const { return m_data; }
    /// @return false, with everything shown, if the text is not understood
    bool setFilter(const SweepFilter& filter);
    const SweepFilter& filter() const { return m_filter; }
    void setPalette(const Palette& palette);

    /// Row of the sweep at a row of the table, and back; -1: none.
    int source(int row) const;
    int place(int source) const;
    const std::vector<int>& order() const { return m_order; } ///< sources, as they are shown

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;

signals:
    void orderChanged(); ///< other rows are shown, or in another order

private:
    int settings() const; ///< columns of settings
    QString display(int source, int column) const;
    bool understand(); ///< fills m_terms from the filter's text
    bool wanted(int source) const;
    void arrange();

    struct Term {
        int column = -1; ///< -1: any
        char relation = '=';
        QString text;
        double number = 0;
        bool isNumber = false;
    };
    std::shared_ptr<const SweepData> m_data;
    SweepFilter m_filter;
    std::vector<Term> m_terms;
    int m_sortColumn = -1; ///< -1: as they came
    Qt::SortOrder m_sortOrder = Qt::AscendingOrder;
    std::vector<int> m_order; ///< by row
    std::vector<int> m_place; ///< by source, -1: not shown
    const Palette* m_palette;
};

} // namespace shardlens
