// SPDX-License-Identifier: Apache-2.0
// `shardlens screenshot FILE OUT.png`: the window as a picture, without a display.
#include "ui/screenshot.h"

#include "app/application.h"
#include "app/commands/commands.h"
#include "app/options.h"

#include <memory>

namespace shardlens::app {

namespace {

struct Wish {
    std::string file, out;
    ScreenshotOptions picture;
};

int screenshot(const Wish& wish, Arguments arguments) {
    const auto application = makeOffscreenApplication(arguments.count, arguments.values);
    renderScreenshot(QString::fromStdString(wish.file), QString::fromStdString(wish.out),
                     wish.picture);
    return 0;
}

} // namespace

void addScreenshot(CLI::App& app, Arguments arguments, Action& action) {
    auto* command = app.add_subcommand("screenshot", "Draw the window into a PNG file");
    const auto wish = std::make_shared<Wish>();
    command->add_option("FILE", wish->file, "Session or model")->required();
    command->add_option("OUT", wish->out, "PNG file to write")->required();
    command
        ->add_option_function<std::string>(
            "--size",
            [wish](const std::string& text) {
                const Size size = parseSize(text);
                wish->picture.size = {size.width, size.height};
            },
            "Width and height in pixels")
        ->type_name("WxH")
        ->default_str("1600x1000");
    command->add_flag("--dark", wish->picture.dark, "Use the dark palette");
    command->add_flag("--stages", wish->picture.stages,
                      "Show the whole job: its stages on the folded page, and their timeline");
    command->add_flag("--folded", wish->picture.folded, "Show the whole page, no block opened");
    command->callback([wish, arguments, &action] {
        action = [wish, arguments] { return screenshot(*wish, arguments); };
    });
}

} // namespace shardlens::app
