// SPDX-License-Identifier: Apache-2.0
// See command_registry.h.
#include "ui/commands/command_registry.h"

#include <QCoreApplication>
#include <QWidget>

#include <array>

namespace shardlens {

namespace {

#define COMMAND_TEXT(source) QT_TRANSLATE_NOOP("Commands", source)

constexpr auto kWindow = CommandScope::Window;
constexpr auto kGraph = CommandScope::Graph;
constexpr auto kFile = COMMAND_TEXT("&File"), kEdit = COMMAND_TEXT("&Edit"),
               kView = COMMAND_TEXT("&View"), kPlan = COMMAND_TEXT("&Plan"),
               kHelp = COMMAND_TEXT("&Help");

constexpr std::array kCommands = {
    CommandSpec{"file.open", kFile, COMMAND_TEXT("&Open…"),
                COMMAND_TEXT("Open a model or a session"), "Ctrl+O"},
    CommandSpec{"file.save", kFile, COMMAND_TEXT("&Save"),
                COMMAND_TEXT("Give this session a file; afterwards every step is saved at once"),
                "Ctrl+S"},
    CommandSpec{"file.saveAs", kFile, COMMAND_TEXT("Save &As…"),
                COMMAND_TEXT("Continue in a copy of this session"), "Ctrl+Shift+S"},
    CommandSpec{"file.quit", kFile, COMMAND_TEXT("&Quit"), COMMAND_TEXT("Close the window"),
                "Ctrl+Q"},
    CommandSpec{"edit.undo", kEdit, COMMAND_TEXT("&Undo"), COMMAND_TEXT("Take back the last step"),
                "Ctrl+Z"},
    CommandSpec{"edit.redo", kEdit, COMMAND_TEXT("&Redo"),
                COMMAND_TEXT("Do the step again that was taken back"), "Ctrl+Shift+Z; Ctrl+Y"},
    CommandSpec{"edit.find", kEdit, COMMAND_TEXT("&Find"),
                COMMAND_TEXT("Search ops by name, kind or class"), "Ctrl+F"},
    CommandSpec{"edit.copyName", kEdit, COMMAND_TEXT("&Copy name"),
                COMMAND_TEXT("Copy the full name of the selected op"), "Ctrl+C", kGraph},
    CommandSpec{"view.fitAll", kView, COMMAND_TEXT("Show &all"),
                COMMAND_TEXT("Show the whole model"), "0", kGraph},
    CommandSpec{"view.fitSelection", kView, COMMAND_TEXT("Show &selection"),
                COMMAND_TEXT("Bring the selected op near"), "F", kGraph},
    CommandSpec{"view.zoomIn", kView, COMMAND_TEXT("Zoom &in"), COMMAND_TEXT("Nearer"),
                "+; =", kGraph},
    CommandSpec{"view.zoomOut", kView, COMMAND_TEXT("Zoom &out"), COMMAND_TEXT("Farther"), "-",
                kGraph},
    CommandSpec{"view.toggleBlock", kView, COMMAND_TEXT("Open or close &block"),
                COMMAND_TEXT("Show what is inside the selected block, or fold it again"), "B",
                kGraph},
    CommandSpec{"view.producer", kView, COMMAND_TEXT("Go to &producer"),
                COMMAND_TEXT("Select the op that makes the first operand"), "Alt+Up"},
    CommandSpec{"view.consumer", kView, COMMAND_TEXT("Go to &consumer"),
                COMMAND_TEXT("Select the first op that reads the result"), "Alt+Down"},
    CommandSpec{"view.back", kView, COMMAND_TEXT("&Back"),
                COMMAND_TEXT("Select what was selected before"), "Alt+Left"},
    CommandSpec{"view.forward", kView, COMMAND_TEXT("For&ward"),
                COMMAND_TEXT("Select what was selected after"), "Alt+Right"},
    CommandSpec{"view.parameters", kView, COMMAND_TEXT("&Parameters"),
                COMMAND_TEXT("Draw parameters and constants on the ops that read them"), "",
                kWindow, true},
    CommandSpec{"view.timeline", kView, COMMAND_TEXT("&Timeline"),
                COMMAND_TEXT("Run a pipeline schedule and look into it"), "Ctrl+T", kWindow, true},
    CommandSpec{"view.sweep", kView, COMMAND_TEXT("S&weep"),
                COMMAND_TEXT("Price all equal-stage plans, or plans over one or two settings"),
                "Ctrl+G", kWindow, true},
    CommandSpec{"view.resetDocks", kView, COMMAND_TEXT("&Reset panels"),
                COMMAND_TEXT("Put all panels back in their places"), ""},
    CommandSpec{"plan.pin", kPlan, COMMAND_TEXT("&Pin"),
                COMMAND_TEXT("Hold the selected op to its choice"), "P", kGraph},
    CommandSpec{"plan.unpin", kPlan, COMMAND_TEXT("&Unpin"),
                COMMAND_TEXT("Let the selected op free"), "Del", kGraph},
    CommandSpec{"plan.pipeline", kPlan, COMMAND_TEXT("Pipeline sta&ges"),
                COMMAND_TEXT("Plan the whole job: divide the model into stages"), "", kWindow,
                true},
    CommandSpec{"plan.freeBoundaries", kPlan, COMMAND_TEXT("&Free stage boundaries"),
                COMMAND_TEXT("Free all stage boundaries that are pinned"), ""},
    CommandSpec{"plan.solve", kPlan, COMMAND_TEXT("&Solve again"),
                COMMAND_TEXT("Find the optimum once more"), "F5"},
    CommandSpec{"plan.cancel", kPlan, COMMAND_TEXT("&Cancel"),
                COMMAND_TEXT("Stop what runs in the background"), "Esc"},
    CommandSpec{"help.palette", kHelp, COMMAND_TEXT("&Command palette…"),
                COMMAND_TEXT("Find a command by its name"), "Ctrl+Shift+P"},
    CommandSpec{"help.keys", kHelp, COMMAND_TEXT("&Keys"), COMMAND_TEXT("Show all keys"), "?; F1"},
    CommandSpec{"help.about", kHelp, COMMAND_TEXT("&About Shardlens"),
                COMMAND_TEXT("What this program is"), ""},
};

} // namespace

std::span<const CommandSpec> commandTable() {
    return kCommands;
}

QString CommandRegistry::translated(const char* source) {
    return QCoreApplication::translate("Commands", source);
}

CommandRegistry::CommandRegistry(QWidget* window, QWidget* graph) {
    for (const CommandSpec& spec : kCommands) {
        auto* action = new QAction(translated(spec.text), window);
        action->setObjectName(QString::fromLatin1(spec.id));
        action->setToolTip(translated(spec.description));
        action->setStatusTip(translated(spec.description));
        action->setCheckable(spec.checkable);
        action->setShortcuts(QKeySequence::listFromString(QString::fromLatin1(spec.keys)));
        if (spec.scope == CommandScope::Graph) {
            action->setShortcutContext(Qt::WidgetShortcut);
            graph->addAction(action);
        } else {
            window->addAction(action);
        }
        m_actions.emplace(spec.id, action);
    }
}

QAction* CommandRegistry::action(const char* id) const {
    const auto found = m_actions.find(id);
    Q_ASSERT_X(found != m_actions.end(), "CommandRegistry", id);
    return found->second;
}

void CommandRegistry::connectTo(const char* id, std::function<void()> function) {
    QAction* target = action(id);
    QObject::connect(target, &QAction::triggered, target,
                     [function = std::move(function)] { function(); });
}

std::vector<QAction*> CommandRegistry::actions() const {
    std::vector<QAction*> list;
    for (const CommandSpec& spec : kCommands) list.push_back(action(spec.id));
    return list;
}

QString CommandRegistry::keysText(const QAction* action) {
    return QKeySequence::listToString(action->shortcuts(), QKeySequence::NativeText)
        .replace(QStringLiteral("; "), QStringLiteral(", "));
}

} // namespace shardlens
