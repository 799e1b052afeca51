// SPDX-License-Identifier: Apache-2.0
// Every command of the window in one table: id, menu, text, what it does, default keys. Menus, the
// palette (Ctrl+Shift+P), the sheet of keys ('?') and the actions themselves all come from it.
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QString>

#include <functional>
#include <map>
#include <span>
#include <vector>

namespace shardlens {

enum class CommandScope {
    Window, ///< keys work everywhere in the window
    Graph,  ///< single letters: only while the graph has the focus
};

struct CommandSpec {
    const char* id;          ///< "file.open": stable, for tests and scripts
    const char* menu;        ///< heading it belongs to
    const char* text;        ///< with mnemonic
    const char* description; ///< one sentence for tips and the palette
    const char* keys;        ///< portable text, alternatives separated by "; ", may be empty
    CommandScope scope = CommandScope::Window;
    bool checkable = false;
};

std::span<const CommandSpec> commandTable();

/// The actions of one window.
class CommandRegistry {
public:
    /// @param window owner of the actions
    /// @param graph  widget that graph keys belong to
    CommandRegistry(QWidget* window, QWidget* graph);

    QAction* action(const char* id) const; ///< asserts that there is one
    void connectTo(const char* id, std::function<void()> function);
    std::vector<QAction*> actions() const; ///< in table order
    static QString translated(const char* source);
    /// "Ctrl+O, F3" as the user's system writes keys.
    static QString keysText(const QAction* action);

private:
    std::map<std::string, QAction*> m_actions;
};

} // namespace shardlens
