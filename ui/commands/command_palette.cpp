// SPDX-License-Identifier: Apache-2.0
// See command_palette.h.
#include "ui/commands/command_palette.h"

#include "ui/commands/command_registry.h"

#include <QDialogButtonBox>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QTableWidget>
#include <QVBoxLayout>

#include <algorithm>

namespace shardlens {

namespace {

QString plainText(const QAction* action) {
    return action->text().remove(QLatin1Char('&'));
}

} // namespace

int fuzzyScore(const QString& typed, const QString& text) {
    int score = 0;
    qsizetype at = 0;
    bool inRow = false;
    for (const QChar letter : typed) {
        if (letter.isSpace()) continue;
        const qsizetype found = text.indexOf(letter, at, Qt::CaseInsensitive);
        if (found < 0) return -1;
        score += 1;
        if (found == at && inRow) score += 3;
        if (found == 0 || !text[found - 1].isLetterOrNumber()) score += 4;
        at = found + 1;
        inRow = true;
    }
    return score;
}

CommandPalette::CommandPalette(std::vector<QAction*> actions, QWidget* parent)
    : QDialog(parent), m_actions(std::move(actions)), m_input(new QLineEdit(this)),
      m_list(new QListWidget(this)) {
    setObjectName(QStringLiteral("commandPalette"));
    setWindowTitle(tr("Commands"));
    setAttribute(Qt::WA_DeleteOnClose);
    m_input->setObjectName(QStringLiteral("paletteInput"));
    m_input->setAccessibleName(tr("Command"));
    m_input->setPlaceholderText(tr("Type a command"));
    m_list->setObjectName(QStringLiteral("paletteList"));
    m_list->setAccessibleName(tr("Matching commands"));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_input);
    layout->addWidget(m_list);
    resize(520, 360);
    m_input->installEventFilter(this);
    connect(m_input, &QLineEdit::textChanged, this, &CommandPalette::refill);
    connect(m_input, &QLineEdit::returnPressed, this, &CommandPalette::run);
    connect(m_list, &QListWidget::itemActivated, this, &CommandPalette::run);
    refill();
}

void CommandPalette::refill() {
    m_list->clear();
    std::vector<std::pair<int, std::size_t>> ranked;
    for (std::size_t i = 0; i < m_actions.size(); ++i) {
        const int score = fuzzyScore(m_input->text(), plainText(m_actions[i]));
        const int inTip = fuzzyScore(m_input->text(), m_actions[i]->toolTip());
        if (score >= 0 || inTip >= 0) ranked.emplace_back(std::max(score * 2, inTip), i);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [score, i] : ranked) {
        const QAction* action = m_actions[i];
        const QString keys = CommandRegistry::keysText(action);
        auto* item = new QListWidgetItem(
            keys.isEmpty() ? plainText(action) : tr("%1    (%2)").arg(plainText(action), keys),
            m_list);
        item->setToolTip(action->toolTip());
        item->setData(Qt::UserRole, static_cast<qulonglong>(i));
        if (!action->isEnabled()) item->setFlags(Qt::NoItemFlags);
    }
    m_list->setCurrentRow(0);
}

void CommandPalette::run() {
    const QListWidgetItem* item = m_list->currentItem();
    if (!item || !(item->flags() & Qt::ItemIsEnabled)) return;
    QAction* action = m_actions[item->data(Qt::UserRole).toULongLong()];
    close();
    action->trigger();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_input && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        const int step = key == Qt::Key_Down ? 1 : key == Qt::Key_Up ? -1 : 0;
        if (step != 0) {
            m_list->setCurrentRow(
                std::clamp(m_list->currentRow() + step, 0, std::max(0, m_list->count() - 1)));
            return true;
        }
    }
    return QDialog::eventFilter(watched, event);
}

QDialog* makeKeySheet(const std::vector<QAction*>& actions, QWidget* parent) {
    auto* dialog = new QDialog(parent);
    dialog->setObjectName(QStringLiteral("keySheet"));
    dialog->setWindowTitle(QDialog::tr("Keys"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    auto* table = new QTableWidget(0, 3, dialog);
    table->setObjectName(QStringLiteral("keyTable"));
    table->setAccessibleName(QDialog::tr("Commands and keys"));
    table->setHorizontalHeaderLabels(
        {QDialog::tr("Keys"), QDialog::tr("Command"), QDialog::tr("What it does")});
    table->verticalHeader()->hide();
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    const auto add = [table](const QString& keys, const QString& name, const QString& what) {
        const int row = table->rowCount();
        table->insertRow(row);
        table->setItem(row, 0, new QTableWidgetItem(keys));
        table->setItem(row, 1, new QTableWidgetItem(name));
        table->setItem(row, 2, new QTableWidgetItem(what));
    };
    for (const QAction* action : actions)
        if (!action->shortcuts().isEmpty())
            add(CommandRegistry::keysText(action), plainText(action), action->toolTip());
    add(QDialog::tr("Arrows"), QDialog::tr("Walk"),
        QDialog::tr("Up to the producer, down to the consumer, left and right to neighbours"));
    add(QDialog::tr("Enter, Space"), QDialog::tr("Open or close block"),
        QDialog::tr("In the graph: show what is inside a block, or fold it again"));
    add(QDialog::tr("Wheel, drag"), QDialog::tr("Zoom, move"),
        QDialog::tr("In the graph; Shift+wheel moves sideways"));
    table->horizontalHeader()->setStretchLastSection(true);
    table->resizeColumnsToContents();
    auto* layout = new QVBoxLayout(dialog);
    layout->addWidget(table);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
    QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::close);
    layout->addWidget(buttons);
    dialog->resize(680, 620);
    return dialog;
}

} // namespace shardlens
