// SPDX-License-Identifier: Apache-2.0
// See application.h. QGuiApplication reports an unreachable display by a fatal message, which ends
// in abort(). A message handler is the only place to step in, and by then the application object
// is half made, so the way out is to execute the program anew.
#include "app/application.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace shardlens::app {

namespace {

constexpr std::array kDisplayVariables = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"};

/// The arguments of this process as the kernel keeps them, each ended by a zero byte.
std::vector<std::string> ownArguments() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> arguments;
    for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
    return arguments;
}

[[noreturn]] void startOverWithoutDisplay() {
    for (const char* variable : kDisplayVariables) qunsetenv(variable);
    auto arguments = ownArguments();
    std::vector<char*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    execv("/proc/self/exe", pointers.data());
    std::fputs("shardlens: the display cannot be opened\n", stderr);
    _exit(1);
}

/// What Qt says of platforms without a screen or a session, which is of no use to anyone.
bool isNoise(const QString& message) {
    return message.startsWith(QLatin1String("This plugin does not support propagateSizeHints")) ||
           message.startsWith(QLatin1String("QStandardPaths: XDG_RUNTIME_DIR not set"));
}

void handleMessage(QtMsgType type, const QMessageLogContext& context, const QString& message) {
    if (isNoise(message)) return;
    const QString line = qFormatLogMessage(type, context, message);
    std::fprintf(stderr, "%s\n", qUtf8Printable(line));
}

/// While the application is being made: what Qt says on the way to giving up is not shown, because
/// the program that starts over says it in one line.
void handleStartMessage(QtMsgType type, const QMessageLogContext& context, const QString& message) {
    if (type == QtFatalMsg) startOverWithoutDisplay();
    if (qstrncmp(context.category, "qt.qpa", 6) != 0) handleMessage(type, context, message);
}

std::unique_ptr<QApplication> makeApplication(int& argc, char** argv) {
    auto application = std::make_unique<QApplication>(argc, argv);
    std::setlocale(LC_NUMERIC, "C");
    QApplication::setApplicationName(QStringLiteral("Shardlens"));
    QApplication::setApplicationVersion(QStringLiteral(SHARDLENS_VERSION));
    QApplication::setOrganizationName(QStringLiteral("Shardlens"));
    QApplication::setDesktopFileName(QStringLiteral("org.shardlens.Shardlens"));
    return application;
}

} // namespace

bool hasDisplay() {
    return std::ranges::any_of(kDisplayVariables, [](const char* variable) {
        return !qEnvironmentVariableIsEmpty(variable);
    });
}

std::unique_ptr<QApplication> makeWindowApplication(int& argc, char** argv) {
    qInstallMessageHandler(handleStartMessage);
    auto application = makeApplication(argc, argv);
    qInstallMessageHandler(handleMessage);
    return application;
}

std::unique_ptr<QApplication> makeOffscreenApplication(int& argc, char** argv) {
    qInstallMessageHandler(handleMessage);
    qputenv("QT_QPA_PLATFORM", "offscreen");
    return makeApplication(argc, argv);
}

} // namespace shardlens::app
