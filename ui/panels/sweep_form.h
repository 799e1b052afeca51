// SPDX-License-Identifier: Apache-2.0
// What is swept: all equal-stage plans, or one or two settings with their values, and who plans.
#pragma once

#include "core/plan/planners/sweep.h"

#include <QJsonObject>
#include <QWidget>

#include <array>

class QComboBox;
class QLabel;
class QLineEdit;

namespace shardlens {

class SweepForm : public QWidget {
    Q_OBJECT

public:
    explicit SweepForm(QWidget* parent = nullptr);

    enum class What { Grid, OneSetting, TwoSettings };
    What what() const;
    void setWhat(What what);
    void setAxis(int axis, SweepParameter parameter, const QString& values);
    QString planner() const;
    /// @throws InputError naming what is typed wrong
    std::vector<SweepAxis> axes() const;

    QJsonObject state() const;
    void setState(const QJsonObject& state);

signals:
    void changed();
    void runRequested(); ///< Enter in a field

private:
    struct Axis {
        QLabel* label;
        QComboBox* parameter;
        QLineEdit* values;
    };
    Axis makeAxis(const QString& object, const QString& label);
    void suggest(const Axis& axis);
    void showFields();

    QComboBox *m_what, *m_planner;
    QLabel* m_plannerLabel;
    std::array<Axis, 2> m_axes;
};

} // namespace shardlens
