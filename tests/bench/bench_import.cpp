// SPDX-License-Identifier: Apache-2.0
// How long files take from the disk to a folded graph: an ONNX file of 600 MB made here, and every
// model of the folder of real models that is given as the argument. Prints medians.
#include "core/error.h"
#include "core/plan/model_bundle.h"
#include "tests/core/import/large_onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

using namespace shardlens;

namespace {

constexpr int kRepeats = 5;

template <typename Work>
double medianSeconds(Work work) {
    std::vector<double> seconds;
    for (int i = 0; i < kRepeats; ++i) {
        const auto start = std::chrono::steady_clock::now();
        work();
        seconds.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::ranges::sort(seconds);
    return seconds[kRepeats / 2];
}

void measure(const std::filesystem::path& path) {
    try {
        const ModelBundle model = loadModel(path);
        const double import = medianSeconds([&] { importModel(path); });
        const double fold = medianSeconds([&] { bundleOf(*model.source); });
        std::size_t repeats = 0;
        for (const FoldRun& run : model.folding->runs) repeats = std::max(repeats, run.count);
        fmt::print("{:55} {:8.1f} MB  import {:7.1f} ms  fold {:7.1f} ms  {:6} ops, {:4} classes, "
                   "longest run {}\n",
                   path.filename().string(),
                   static_cast<double>(std::filesystem::file_size(path)) / 1e6, import * 1e3,
                   fold * 1e3, model.graph->ops().size(), model.folding->classes.size(), repeats);
    } catch (const InputError& error) {
        fmt::print("{:55} {}\n", path.filename().string(), error.problem());
    }
}

} // namespace

int main(int argc, char** argv) {
    const std::filesystem::path large =
        std::filesystem::temp_directory_path() / "shardlens-bench-large.onnx";
    const double before = test::privateBytes();
    test::writeLargeOnnx(large, 150, 1024);
    measure(large);
    fmt::print("  private memory grew by {:.1f} MB\n", (test::privateBytes() - before) / 1e6);
    std::filesystem::remove(large);
    if (argc < 2) {
        fmt::print("Give a folder of models to measure those too.\n");
        return 0;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1]))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const auto& file : files) measure(file);
}
