// SPDX-License-Identifier: Apache-2.0
// ONNX's operator test data through the importer and the reference kernels: what an op means is
// decided by ONNX's own reference implementation, not by us. A case passes when all its results
// agree; it is "not covered" when the graph holds something that no kernel computes.
#include "core/error.h"
#include "core/model/graph_algorithms.h"
#include "tests/core/execute/onnx_node_case.h"
#include "tests/test_program.h"

#include <QTest>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

namespace tst_onnx_node {

using namespace shardlens;
using namespace shardlens::test;

namespace {

const std::filesystem::path kFolder = "/usr/share/libonnx-testdata/data/node";
constexpr std::size_t kPassedAtLeast = 832;
constexpr const char* kOthers = "(strings, sequences, optionals)";

/// What the graph's results depend on.
std::vector<OpId> neededOps(const Graph& graph) {
    std::set<OpId> needed;
    std::vector<TensorId> open(graph.outputs().begin(), graph.outputs().end());
    while (!open.empty()) {
        const TensorId tensor = open.back();
        open.pop_back();
        if (tensor == kNoTensor || !needed.insert(graph.tensor(tensor).producer).second) continue;
        const Op& op = graph.op(graph.tensor(tensor).producer);
        open.insert(open.end(), op.inputs.begin(), op.inputs.end());
    }
    return {needed.begin(), needed.end()};
}

std::optional<Array> knownValue(const Tensor& tensor) {
    Array array = Array::zeros(tensor.spec, tensor.spec.shape);
    if (tensor.value && array.integral) {
        array.ints = *tensor.value;
        return array;
    }
    if (tensor.reals && !array.integral) {
        array.reals = *tensor.reals;
        return array;
    }
    return std::nullopt;
}

/// Results that no run can reproduce: they are drawn at random.
bool isRandom(const Op& op) {
    const std::string function = op.attributes.text("function");
    if (op.kind == OpKind::Dropout)
        return op.attributes.integer("training", 1) != 0 && op.attributes.number("ratio", 0.5) > 0;
    if (op.kind == OpKind::Elementwise) return function == "random";
    return op.kind == OpKind::Generate && (function == "normal" || function == "uniform");
}

struct Prepared {
    Graph graph;
    Feeds feeds;
    std::string missing; ///< the op type that no kernel computes; empty if there is none
};

Prepared prepare(const NodeCase& node, std::size_t embeddedFrom) {
    std::vector<Bytes> initializers;
    for (std::size_t i = embeddedFrom; i < node.inputFiles.size(); ++i) {
        Bytes tensor = node.inputFiles[i];
        const auto* name = reinterpret_cast<const std::byte*>(node.inputs[i].data());
        appendBytes(tensor, 8, {name, node.inputs[i].size()});
        initializers.push_back(std::move(tensor));
    }
    const Bytes model = withInitializers(node.model, initializers);
    Prepared made{importOnnx(model, node.name), {}, {}};
    for (OpId id = 0; id < made.graph.ops().size(); ++id) {
        const Op& op = made.graph.op(id);
        const bool alone = op.outputs.size() == 1;
        const auto input = std::ranges::find(node.inputs, op.name);
        const auto at = static_cast<std::size_t>(input - node.inputs.begin());
        if (op.inputs.empty() && at < node.operands.size())
            made.feeds[id] = node.operands[at].array;
        else if (alone && (op.inputs.empty() || op.kind == OpKind::Opaque))
            if (auto value = knownValue(made.graph.tensor(op.outputs[0])))
                made.feeds[id] = std::move(*value);
    }
    for (const OpId id : neededOps(made.graph)) {
        const Op& op = made.graph.op(id);
        const bool runs = made.feeds.contains(id) ||
                          (op.kind != OpKind::Opaque && hasKernel(op.kind) && !isRandom(op));
        if (!runs && made.missing.empty())
            made.missing = op.type.empty() ? std::string(nameOf(op.kind)) : op.type;
    }
    return made;
}

/// As little as possible is written into the model: an op whose operands are all graph inputs is
/// run by its kernel, not folded by the importer.
Prepared prepare(const NodeCase& node) {
    Prepared made;
    for (const std::size_t embeddedFrom : {node.inputs.size(), std::size_t{1}, std::size_t{0}}) {
        made = prepare(node, embeddedFrom);
        if (made.missing.empty()) return made;
    }
    return made;
}

struct Tolerance {
    double relative, absolute;
};
/// Windows of ONNX's data were made with 3.1415 for pi; bicubic samples and means of regions were
/// written down with four digits.
bool isRough(const std::string& name) {
    return name.find("window") != std::string::npos || name == "gridsample_bicubic" ||
           name.starts_with("roialign_aligned");
}

Tolerance toleranceOf(DType dtype, const std::string& name) {
    if (isRough(name)) return {1e-3, 1e-4};
    switch (dtype) {
    case DType::F64:
        return {1e-7, 1e-9};
    case DType::F16:
        return {2e-3, 1e-4};
    case DType::BF16:
        return {1e-2, 1e-3};
    default:
        return {1e-5, 1e-6};
    }
}

bool agree(double actual, double expected, const Tolerance& tolerance) {
    if (std::isnan(expected)) return std::isnan(actual);
    if (std::isinf(expected)) return actual == expected;
    return std::abs(actual - expected) <=
           tolerance.absolute + tolerance.relative * std::abs(expected);
}

/// Kernels compute in double where ONNX's reference does in float, so that a number may be rounded
/// to the integer beside.
std::int64_t roundingOf(const Graph& graph) {
    return std::ranges::any_of(graph.ops(),
                               [](const Op& op) {
                                   const std::string function = op.attributes.text("function");
                                   return function == "quantize" || function == "round";
                               })
               ? 1
               : 0;
}

/// What is wrong with a result, or nothing. @param rounding by which integers may differ
std::string difference(const Array& actual, const FileTensor& expected, std::int64_t rounding,
                       const Tolerance& tolerance) {
    if (actual.shape != expected.array.shape)
        return fmt::format("shape {} instead of {}", toString(actual.shape),
                           toString(expected.array.shape));
    if (actual.integral != expected.array.integral) return "the wrong type of element";
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const bool same = actual.integral
                              ? std::abs(actual.ints[i] - expected.array.ints[i]) <= rounding
                              : agree(actual.reals[i], expected.array.reals[i], tolerance);
        if (!same)
            return fmt::format("element {} is {} instead of {}", i, actual.at(i),
                               expected.array.at(i));
    }
    return {};
}

std::string runAndCompare(const Prepared& made, const NodeCase& node) {
    if (made.graph.outputs().size() != node.results.size()) return "the wrong number of results";
    const StepValues step = runWhole(made.graph, made.feeds, false);
    for (std::size_t r = 0; r < node.results.size(); ++r) {
        const TensorId tensor = made.graph.outputs()[r];
        if (made.graph.tensor(tensor).spec.dtype != node.results[r].dtype)
            return fmt::format("result {} has type {} instead of {}", r,
                               nameOf(made.graph.tensor(tensor).spec.dtype),
                               nameOf(node.results[r].dtype));
        const std::string wrong =
            difference(step.values[tensor], node.results[r], roundingOf(made.graph),
                       toleranceOf(node.results[r].dtype, node.name));
        if (!wrong.empty()) return fmt::format("result {}: {}", r, wrong);
    }
    return {};
}

} // namespace

class TestOnnxNode : public QObject {
    Q_OBJECT

private:
    /// The README's list of ops that are not covered, one in backquotes each.
    static void readmeNames(const std::map<std::string, std::vector<std::string>>& missing) {
        std::ifstream file(SHARDLENS_SOURCE "/README.md");
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        const auto begin = text.find("ONNX ops that are not covered:");
        QVERIFY(begin != std::string::npos);
        const std::string list = text.substr(begin, text.find("\n\n", begin) - begin);
        for (const auto& [op, names] : missing) {
            if (op == kOthers) continue;
            const std::string name = op.substr(op.rfind(':') + 1); // without the domain
            QVERIFY2(list.find("`" + name + "`") != std::string::npos,
                     qPrintable(QString("README.md does not name %1").arg(name.c_str())));
        }
    }

private slots:
    void everyCoveredCaseAgrees() {
        if (!std::filesystem::exists(kFolder)) QSKIP("needs the package libonnx-testdata");
        std::vector<std::filesystem::path> folders;
        for (const auto& entry : std::filesystem::directory_iterator(kFolder))
            folders.push_back(entry.path());
        std::ranges::sort(folders);
        std::size_t passed = 0;
        std::map<std::string, std::vector<std::string>> missing;
        std::vector<std::string> failed;
        for (const auto& folder : folders) {
            const NodeCase node = readCase(folder);
            if (!node.readable()) {
                missing[kOthers].push_back(node.name);
                continue;
            }
            try {
                const Prepared made = prepare(node);
                if (!made.missing.empty()) {
                    missing[made.missing].push_back(node.name);
                    continue;
                }
                const std::string wrong = runAndCompare(made, node);
                if (wrong.empty())
                    ++passed;
                else
                    failed.push_back(fmt::format("{}: {}", node.name, wrong));
            } catch (const std::exception& error) {
                failed.push_back(fmt::format("{}: {}", node.name, error.what()));
            }
        }
        std::size_t notCovered = 0;
        for (const auto& [op, names] : missing) {
            notCovered += names.size();
            std::cout << fmt::format("not covered: {} ({})\n", op, fmt::join(names, ", "));
        }
        for (const std::string& line : failed) std::cout << "FAILED " << line << '\n';
        std::cout << fmt::format("{} cases: {} passed, {} not covered, {} failed\n", folders.size(),
                                 passed, notCovered, failed.size());
        QVERIFY2(failed.empty(), failed.empty() ? "" : failed.front().c_str());
        QVERIFY(passed >= kPassedAtLeast);
        readmeNames(missing);
    }
};

SHARDLENS_TEST(TestOnnxNode)

} // namespace tst_onnx_node

#include "tst_onnx_node.moc"
