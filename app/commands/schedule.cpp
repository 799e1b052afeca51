// SPDX-License-Identifier: Apache-2.0
// `shardlens schedule`: a pipeline schedule by name, or from a CSV file of PyTorch, run through the
// event engine: step time, bubble by cause and memory of every device; or all schedules side by
// side. It can be written as CSV for PyTorch, and as a trace for Perfetto.
#include "app/application.h"
#include "app/commands/commands.h"
#include "app/files.h"
#include "core/error.h"
#include "core/schedule/schedule_csv.h"
#include "core/schedule/trace.h"
#include "core/schedule/validate.h"
#include "ui/views/timeline_export.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <memory>

namespace shardlens::app {

namespace {

using namespace shardlens::schedule;

struct ScheduleOptions {
    ScheduleSpec spec;
    StageTimes times;
    std::uint32_t slices = 0; ///< equal ones; 0 = the schedule's own
    double transfer = 0, capacity = kUnlimited;
    std::string import, csv, trace, svg, png;
    bool all = false, json = false;
};

constexpr std::uint32_t kTeraPipeSlices = 4;

/// The spec of a schedule, with what it needs where nothing is said.
ScheduleSpec specFor(const ScheduleOptions& options, std::string_view name) {
    ScheduleSpec spec = options.spec;
    spec.name = name;
    spec.times = {options.times};
    spec.transfer = {options.transfer};
    spec.capacity = {options.capacity};
    if (spec.chunks == 0) spec.chunks = name == "interleaved" ? 2 : 1;
    const std::uint32_t slices = options.slices > 0   ? options.slices
                                 : name == "terapipe" ? kTeraPipeSlices
                                                      : 1;
    if (slices > 1) spec.slices.assign(slices, 1.0 / slices);
    return spec;
}

/// A schedule with two stages on a device has v = 2, whoever asks.
std::string nameOf(const ScheduleSpec& spec, const Generator& generator) {
    std::string name(generator.title);
    if (spec.chunks > 1) name += fmt::format(", v={}", spec.chunks);
    if (!spec.slices.empty()) name += fmt::format(", {} slices", spec.slices.size());
    return name;
}

const char* exactnessText(Exactness exactness) {
    switch (exactness) {
    case Exactness::Synchronous:
        return "synchronous";
    case Exactness::Stale:
        return "stale";
    case Exactness::Local:
        return "local";
    }
    return "";
}

/// Rounds what sums of durations leave over.
double tidy(double value) {
    return std::abs(value) < 1e-12 ? 0 : value;
}
std::string number(double value) {
    return fmt::format("{:.6g}", tidy(value));
}

nlohmann::ordered_json toJson(const Account& account, const Timeline& timeline) {
    nlohmann::ordered_json devices = nlohmann::ordered_json::array();
    for (const DeviceUse& use : account.devices) {
        nlohmann::ordered_json idle;
        for (std::size_t c = 0; c < kCauses; ++c) {
            idle[std::string(causeText(static_cast<Cause>(c)))] = tidy(use.idle[c]);
        }
        devices.push_back({{"busy", use.busy},
                           {"first", use.first},
                           {"last", use.last},
                           {"spanBubble", tidy(use.spanBubble())},
                           {"peakMemory", use.peakMemory},
                           {"peakInFlight", use.peakInFlight},
                           {"idle", std::move(idle)}});
    }
    return {{"makespan", timeline.makespan},    {"work", account.work},
            {"bubble", tidy(account.bubble)},   {"spanBubble", tidy(account.spanBubble)},
            {"peakMemory", account.peakMemory}, {"devices", std::move(devices)}};
}

void print(const Account& account, const Timeline& timeline) {
    fmt::print("step     {}\n", number(timeline.makespan));
    fmt::print("bubble   {} ({:.1f} % of the step), {} within a device's span\n",
               number(account.bubble), 100 * account.bubble / timeline.makespan,
               number(account.spanBubble));
    fmt::print("memory   {} at most\n\n", number(account.peakMemory));
    fmt::print("{:>6} {:>10} {:>8} {:>9}  idle\n", "device", "busy", "memory", "in flight");
    for (std::size_t d = 0; d < account.devices.size(); ++d) {
        const DeviceUse& use = account.devices[d];
        std::string idle;
        for (std::size_t c = 0; c < kCauses; ++c) {
            if (tidy(use.idle[c]) == 0) continue;
            idle += fmt::format("{}{} {}", idle.empty() ? "" : ", ",
                                causeText(static_cast<Cause>(c)), number(use.idle[c]));
        }
        fmt::print("{:>6} {:>10} {:>8} {:>9}  {}\n", d, number(use.busy), number(use.peakMemory),
                   use.peakInFlight, idle.empty() ? "none" : idle);
    }
}

int showAll(const ScheduleOptions& options) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    if (!options.json) {
        fmt::print("{:<22} {:>9} {:>9} {:>9} {:>9} {:>8}  {}\n", "schedule", "step", "bubble",
                   "in span", "memory", "weights", "update");
    }
    for (const Generator& generator : generators()) {
        const ScheduleSpec spec = specFor(options, generator.name);
        const std::string name = nameOf(spec, generator);
        try {
            const Schedule s = makeSchedule(spec);
            checkMemory(s.program, s.timeline);
            if (options.json) {
                auto row = toJson(s.account, s.timeline);
                row["schedule"] = generator.name;
                row["weightCopies"] = generator.weightCopies;
                row["update"] = exactnessText(generator.exactness);
                out.push_back(std::move(row));
                continue;
            }
            fmt::print("{:<22} {:>9} {:>9} {:>9} {:>9} {:>8}  {}\n", name,
                       number(s.timeline.makespan), number(s.account.bubble),
                       number(s.account.spanBubble), number(s.account.peakMemory),
                       fmt::format("{}x", generator.weightCopies),
                       exactnessText(generator.exactness));
        } catch (const RuleError& error) {
            if (options.json) {
                out.push_back({{"schedule", generator.name}, {"refused", error.what()}});
            } else {
                fmt::print("{:<22} {}\n", name, error.problem());
            }
        }
    }
    if (options.json) fmt::print("{}\n", out.dump(1));
    return 0;
}

/// Pictures of the whole step, painted as the window does.
void draw(const ScheduleOptions& options, std::shared_ptr<const Schedule> schedule,
          Arguments arguments) {
    if (options.svg.empty() && options.png.empty()) return;
    const auto application = makeOffscreenApplication(arguments.count, arguments.values);
    const TimelinePicture picture(std::move(schedule), {});
    TimelineExport page;
    page.font = QApplication::font();
    page.format = TimelineFormat::Svg;
    if (!options.svg.empty()) writeTimeline(picture, QString::fromStdString(options.svg), page);
    page.format = TimelineFormat::Png;
    if (!options.png.empty()) writeTimeline(picture, QString::fromStdString(options.png), page);
}

int show(ScheduleOptions& options, Arguments arguments) {
    if (options.all) return showAll(options);
    ScheduleSpec spec = specFor(options, options.spec.name);
    std::string title;
    const auto made = std::make_shared<Schedule>();
    Schedule& s = *made;
    if (!options.import.empty()) {
        auto imported = readScheduleCsv(readFile(options.import), options.import);
        title = options.import;
        spec.slices.clear();
        spec.devices = imported.orders.devices;
        checkSpec(spec);
        s = makeSchedule(spec, std::move(imported.orders));
    } else {
        title = nameOf(spec, generator(spec.name));
        s = makeSchedule(spec);
    }
    checkMemory(s.program, s.timeline);
    if (!options.csv.empty()) {
        const std::string csv = writeScheduleCsv(asLists(s.orders, s.program, s.timeline));
        writeFile(options.csv, [&](std::ostream& out) { out << csv; });
    }
    if (!options.trace.empty()) {
        writeFile(options.trace,
                  [&](std::ostream& out) { writeTrace(out, s.program, s.timeline, s.account); });
    }
    draw(options, made, arguments);
    if (options.json) {
        nlohmann::ordered_json out = {{"schedule", title},
                                      {"devices", s.orders.devices},
                                      {"stages", s.orders.stages},
                                      {"microBatches", s.orders.microBatches},
                                      {"tasks", s.program.tasks.size()}};
        out["result"] = toJson(s.account, s.timeline);
        fmt::print("{}\n", out.dump(1));
        return 0;
    }
    fmt::print("schedule {}, {} devices, {} stages, {} micro-batches\n", title, s.orders.devices,
               s.orders.stages, s.orders.microBatches);
    print(s.account, s.timeline);
    return 0;
}

void addSizes(CLI::App& command, ScheduleOptions& options) {
    ScheduleSpec& spec = options.spec;
    spec.chunks = 0;
    command.add_option("--p", spec.devices, "Devices in the pipeline")->capture_default_str();
    command.add_option("--m", spec.microBatches, "Micro-batches")->capture_default_str();
    command.add_option("--v", spec.chunks, "Stages on a device (interleaved)");
    command.add_option("--slices", options.slices, "Equal slices of a sequence (terapipe)");
    command.add_option("--rounds", spec.rounds,
                       "Updates shown (2bw), rounds without gradient (3f1b)");
    command.add_option("--limit", spec.limit, "Micro-batches in flight (zb-h2, zb-v, chimera)");
}

void addTimes(CLI::App& command, ScheduleOptions& options) {
    ScheduleSpec& spec = options.spec;
    StageTimes& times = options.times;
    const auto add = [&](const char* name, double& value, const char* what) {
        command.add_option(name, value, what)->capture_default_str();
    };
    add("--f", times.forward, "Forward of a micro-batch on one device");
    add("--b", times.input, "Its input gradient; the whole backward is b + w");
    add("--w", times.weight, "Its weight gradient");
    add("--recompute", times.recompute, "Its forward again before the backward");
    add("--update", times.update, "Optimizer step");
    add("--all-reduce", times.allReduce, "Gradients between replicas");
    add("--comm", options.transfer, "Transfer from stage to stage");
    static const std::map<std::string, Transfers> kTransfers = {
        {"lag", Transfers::Lag}, {"stream", Transfers::Stream}, {"blocking", Transfers::Blocking}};
    command
        .add_option(
            "--transfers", spec.transfers,
            "lag (links of any width), stream (one after the other), blocking (nothing overlaps)")
        ->transform(CLI::CheckedTransformer(kTransfers).description("{lag,stream,blocking}"))
        ->type_name("TEXT");
    add("--joint", spec.jointFactor, "Time of a joint forward and backward, as a share of both");
    add("--embed", spec.embedTime, "Forward of a shared layer on one device (interlaced)");
    add("--embed-sync", spec.embedSync, "Its communication for a micro-batch");
    command.add_option("--embeddings", spec.embeddings, "Shared layers: 1 or 2")
        ->capture_default_str();
    add("--aux", spec.auxTime, "Auxiliary head of a block (local)");
    command.add_flag("--overlapping", spec.overlapping,
                     "Train blocks on the next one's loss (local)");
    add("--freed-by-input", spec.freedByInput, "Share of activations that input gradients free");
    add("--capacity", options.capacity, "Activations that a device can hold, in micro-batches");
}

} // namespace

void addSchedule(CLI::App& app, Arguments arguments, Action& action) {
    auto* command = app.add_subcommand("schedule", "Run a pipeline schedule, or all of them");
    const auto options = std::make_shared<ScheduleOptions>();
    auto* name = command->add_option("--name", options->spec.name, "Which one; --all lists them")
                     ->capture_default_str();
    auto* all = command->add_flag("--all", options->all, "All schedules as a table");
    auto* import = command->add_option("--import", options->import, "Schedule CSV of PyTorch");
    auto* csv = command->add_option("--csv", options->csv, "Write the schedule for PyTorch");
    auto* trace = command->add_option("--trace", options->trace,
                                      "Write a Chrome trace, which Perfetto opens; 1 is a second");
    auto* svg = command->add_option("--svg", options->svg, "Draw the timeline into an SVG file");
    auto* png = command->add_option("--png", options->png, "Draw the timeline into a PNG file");
    all->excludes(name)->excludes(import)->excludes(csv)->excludes(trace);
    all->excludes(svg)->excludes(png);
    import->excludes(name);
    addSizes(*command, *options);
    addTimes(*command, *options);
    command->add_flag("--json", options->json, "Write JSON");
    command->callback([options, arguments, &action] {
        action = [options, arguments] { return show(*options, arguments); };
    });
}

} // namespace shardlens::app
