// SPDX-License-Identifier: Apache-2.0
// The QApplication of the window and of the screenshot. Qt aborts the process when it cannot reach
// the display it was told of; here that becomes an answer. Numbers keep the C locale, which
// QApplication would change to the user's.
#pragma once

#include <QApplication>

#include <memory>

namespace shardlens::app {

/// Whether the environment names a display, or a Qt platform to use.
bool hasDisplay();

/// For a window. Should the display turn out to be out of reach, does not return: the process
/// starts over with the same arguments and an environment without a display.
std::unique_ptr<QApplication> makeWindowApplication(int& argc, char** argv);

/// For pictures: needs no display, looks the same everywhere.
std::unique_ptr<QApplication> makeOffscreenApplication(int& argc, char** argv);

} // namespace shardlens::app
