// SPDX-License-Identifier: Apache-2.0
// The command palette: type a few letters of a command, Enter runs it. And the sheet of keys.
#pragma once

#include <QAction>
#include <QDialog>

#include <vector>

class QLineEdit;
class QListWidget;

namespace shardlens {

/// How well letters typed in order fit a text; negative if they do not. Beginnings of words and
/// letters in a row count more.
int fuzzyScore(const QString& typed, const QString& text);

class CommandPalette : public QDialog {
    Q_OBJECT

public:
    CommandPalette(std::vector<QAction*> actions, QWidget* parent);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void refill();
    void run();

    std::vector<QAction*> m_actions;
    QLineEdit* m_input;
    QListWidget* m_list;
};

/// All commands with their keys, as a table in a dialog.
QDialog* makeKeySheet(const std::vector<QAction*>& actions, QWidget* parent);

} // namespace shardlens
