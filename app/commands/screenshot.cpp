// SPDX-License-Identifier: Apache-2.0
// `shardlens screenshot FILE OUT.png`: the window as a picture, without a display.
#include "ui/screenshot.h"

#include "app/application.h"
#include "app/commands/commands.h"
#include "app/options.h"

#include <memory>

namespace shardlens::app {

namespace {

struct ScreenshotOptions {
    std::string file, out;
    Size size{1600, 1000};
    bool dark = false;
};

int screenshot(const ScreenshotOptions& options, Arguments arguments) {
    const auto application = makeOffscreenApplication(arguments.count, arguments.values);
    renderScreenshot(QString::fromStdString(options.file), QString::fromStdString(options.out),
                     {options.size.width, options.size.height}, options.dark);
    return 0;
}

} // namespace

void addScreenshot(CLI::App& app, Arguments arguments, Action& action) {
    auto* command = app.add_subcommand("screenshot", "Draw the window into a PNG file");
    const auto options = std::make_shared<ScreenshotOptions>();
    command->add_option("FILE", options->file, "Session or model")->required();
    command->add_option("OUT", options->out, "PNG file to write")->required();
    command
        ->add_option_function<std::string>(
            "--size", [options](const std::string& text) { options->size = parseSize(text); },
            "Width and height in pixels")
        ->type_name("WxH")
        ->default_str("1600x1000");
    command->add_flag("--dark", options->dark, "Use the dark palette");
    command->callback([options, arguments, &action] {
        action = [options, arguments] { return screenshot(*options, arguments); };
    });
}

} // namespace shardlens::app
