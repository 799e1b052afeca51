// SPDX-License-Identifier: Apache-2.0
// Ops that run on matrix units: products, einsum, convolutions, and the pooling that shares their
// windows. Quantised forms become the product with 32-bit sums and a requantisation of its own, so
// that partial sums are seen to be reduced before the rounding.
#include "core/import/onnx_translation.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

Attributes functionOf(std::string_view function) {
    return {{"function", std::string(function)}};
}

// --- products -----------------------------------------------------------------------------------

void matMul(Translation& t, std::string_view) {
    t.result(OpKind::MatMul, {}, {t.input(0), t.input(1)});
}

Attributes transposes(const Translation& t) {
    Attributes attributes;
    if (t.integer("transA", 0) != 0) attributes.set("transA", std::int64_t{1});
    if (t.integer("transB", 0) != 0) attributes.set("transB", std::int64_t{1});
    return attributes;
}

/// alpha * A' * B' + beta * C. A row vector C is the bias of the product itself.
void gemm(Translation& t, std::string_view) {
    t.require(t.rank(0) == 2 && t.rank(1) == 2, "Gemm needs matrices");
    const double alpha = t.number("alpha", 1), beta = t.number("beta", 1);
    const std::int64_t columns = t.shape(1)[t.integer("transB", 0) != 0 ? 0 : 1];
    std::vector<TensorId> operands{t.input(0), t.input(1)};
    const bool hasC = t.has(2) && beta != 0;
    if (!hasC && alpha == 1) {
        t.result(OpKind::MatMul, transposes(t), operands);
        return;
    }
    const bool isRow = hasC && !t.shape(2).empty() && t.shape(2).back() == columns &&
                       elementsOf(t.shape(2)) == static_cast<double>(columns);
    if (isRow && alpha == 1 && beta == 1) {
        operands.push_back(t.rank(2) == 1 ? t.input(2) : t.reshaped(t.input(2), {columns}));
        t.result(OpKind::MatMul, transposes(t), operands);
        return;
    }
    TensorId product = t.step(OpKind::MatMul, transposes(t), operands);
    if (!hasC) {
        t.result(OpKind::Elementwise, functionOf("scale"), {product});
        return;
    }
    if (alpha != 1) product = t.step(OpKind::Elementwise, functionOf("scale"), {product});
    TensorId added = t.input(2);
    if (beta != 1) added = t.step(OpKind::Elementwise, functionOf("scale"), {added});
    t.result(OpKind::Elementwise, functionOf("add"), {product, added});
}

/// com.microsoft: transposes of the last two dims, scaled by alpha.
void fusedMatMul(Translation& t, std::string_view) {
    if (t.integer("transBatchA", 0) != 0 || t.integer("transBatchB", 0) != 0) return t.opaque();
    Attributes attributes = transposes(t);
    if (t.rank(0) < 2) attributes.set("transA", std::int64_t{0});
    if (t.rank(1) < 2) attributes.set("transB", std::int64_t{0});
    if (t.number("alpha", 1) == 1) {
        t.result(OpKind::MatMul, std::move(attributes), {t.input(0), t.input(1)});
        return;
    }
    const TensorId product =
        t.step(OpKind::MatMul, std::move(attributes), {t.input(0), t.input(1)});
    t.result(OpKind::Elementwise, functionOf("scale"), {product});
}

void matMulInteger(Translation& t, std::string_view) {
    t.result(OpKind::MatMul, {}, {t.input(0), t.input(1)}, DType::I32);
}

Attributes quantizeTo(DType dtype) {
    return {{"function", std::string("quantize")}, {"to", std::string(nameOf(dtype))}};
}

void qLinearMatMul(Translation& t, std::string_view) {
    const DType dtype = t.has(7) ? t.dtype(7) : t.dtype(0);
    const TensorId sums = t.step(OpKind::MatMul, {}, {t.input(0), t.input(3)}, DType::I32);
    t.result(OpKind::Elementwise, quantizeTo(dtype), {sums});
}

/// com.microsoft: B holds N rows of K weights in blocks, a few bits each (see Role::Packed4Bit).
void matMulNBits(Translation& t, std::string_view) {
    const std::int64_t n = t.integer("N", 0), k = t.integer("K", 0);
    const Shape& blocks = t.shape(1);
    const bool understood = blocks.size() == 3 && blocks[0] == n && blocks[1] * blocks[2] >= k;
    if (n <= 0 || k <= 0 || !understood || t.rank(0) == 0) {
        Shape shape = t.shape(0);
        t.require(!shape.empty() && n >= 0, "operand 0 and N do not fit");
        shape.back() = n;
        return t.opaque({TensorSpec{t.dtype(0), shape}});
    }
    const std::int64_t columns = blocks[1] * blocks[2];
    TensorId weights = t.reshaped(t.input(1), {n, columns});
    if (columns != k)
        weights =
            t.step(OpKind::Slice,
                   {{"axes", Ints{1}}, {"starts", Ints{0}}, {"ends", Ints{k}}, {"steps", Ints{1}}},
                   {weights});
    Attributes dequantize = functionOf("dequantize");
    dequantize.set("to", std::string(nameOf(t.dtype(0))));
    std::vector<TensorId> operands{t.input(0), t.step(OpKind::Elementwise, dequantize, {weights})};
    if (t.has(5)) operands.push_back(t.input(5));
    t.result(OpKind::MatMul, {{"transB", std::int64_t{1}}}, std::move(operands));
}

// --- einsum -------------------------------------------------------------------------------------

/// An equation with blanks removed, the arrow made explicit and each "..." replaced by letters.
class Equation {
public:
    Equation(Translation& t, std::string_view text) : m_t(t) {
        std::string all;
        std::ranges::copy_if(text, std::back_inserter(all), [](char c) { return c != ' '; });
        const auto arrow = all.find("->");
        std::string left = all.substr(0, arrow);
        while (true) {
            const auto comma = left.find(',');
            m_operands.push_back(left.substr(0, comma));
            if (comma == std::string::npos) break;
            left.erase(0, comma + 1);
        }
        m_t.require(m_operands.size() == t.inputCount(),
                    "the einsum equation and the operands differ in number");
        m_result = arrow == std::string::npos ? impliedResult() : all.substr(arrow + 2);
    }

    void translate() {
        std::vector<TensorId> operands;
        for (std::size_t i = 0; i < m_operands.size(); ++i) operands.push_back(expand(i));
        replaceDots(m_result, m_dots);
        const std::string text =
            relabelled(fmt::format("{}->{}", fmt::join(m_operands, ","), m_result));
        m_t.result(OpKind::Einsum, {{"equation", text}}, std::move(operands));
    }

private:
    static constexpr std::string_view kDots = "...";

    /// Without an arrow the result has the letters that occur once, in alphabetical order.
    std::string impliedResult() const {
        std::map<char, int> count;
        bool dots = false;
        for (const std::string& operand : m_operands)
            for (const char c : operand) {
                dots = dots || c == '.';
                if (c != '.') ++count[c];
            }
        std::string result(dots ? kDots : "");
        for (const auto& [letter, times] : count)
            if (times == 1) result.push_back(letter);
        return result;
    }

    void replaceDots(std::string& term, const std::string& letters) const {
        if (const auto at = term.find(kDots); at != std::string::npos)
            term.replace(at, kDots.size(), letters);
    }

    /// Dims under the dots take letters from the right. One of size 1 that others broadcast over
    /// is reshaped away.
    TensorId expand(std::size_t i) {
        std::string& term = m_operands[i];
        const auto at = term.find(kDots);
        if (at == std::string::npos) return m_t.input(i);
        const Shape& shape = m_t.shape(i);
        m_t.require(shape.size() + kDots.size() >= term.size(), "an operand has too few dims");
        const std::size_t hidden = shape.size() + kDots.size() - term.size();
        prepareDots();
        Shape kept(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(at));
        std::string letters;
        for (std::size_t d = 0; d < hidden; ++d) {
            const std::size_t fromRight = hidden - d;
            if (shape[at + d] == 1 && m_dotSizes[m_dots.size() - fromRight] != 1) continue;
            letters.push_back(m_dots[m_dots.size() - fromRight]);
            kept.push_back(shape[at + d]);
        }
        kept.insert(kept.end(), shape.begin() + static_cast<std::ptrdiff_t>(at + hidden),
                    shape.end());
        replaceDots(term, letters);
        return kept == shape ? m_t.input(i) : m_t.reshaped(m_t.input(i), kept);
    }

    /// Letters and broadcast sizes of all dims under dots.
    void prepareDots() {
        if (!m_dots.empty()) return;
        for (std::size_t i = 0; i < m_operands.size(); ++i) {
            const auto at = m_operands[i].find(kDots);
            const Shape& shape = m_t.shape(i);
            if (at == std::string::npos || shape.size() + kDots.size() < m_operands[i].size())
                continue;
            const std::size_t hidden = shape.size() + kDots.size() - m_operands[i].size();
            if (hidden > m_dotSizes.size())
                m_dotSizes.insert(m_dotSizes.begin(), hidden - m_dotSizes.size(), 1);
            for (std::size_t d = 0; d < hidden; ++d) {
                auto& size = m_dotSizes[m_dotSizes.size() - hidden + d];
                size = std::max(size, shape[at + d]);
            }
        }
        for (char c = 'a'; c <= 'z' && m_dots.size() < m_dotSizes.size(); ++c)
            if (!uses(c)) m_dots.push_back(c);
        m_t.require(m_dots.size() == m_dotSizes.size(), "the einsum equation needs more letters");
    }

    bool uses(char letter) const {
        return std::ranges::any_of(m_operands, [letter](const std::string& operand) {
            return operand.find(letter) != std::string::npos;
        });
    }

    /// Letters in order of appearance, so that equal products have equal equations.
    static std::string relabelled(std::string text) {
        std::map<char, char> names;
        const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        for (char& c : text)
            if (letters.find(c) != std::string::npos)
                c = names.try_emplace(c, letters[names.size()]).first->second;
        return text;
    }

    Translation& m_t;
    std::vector<std::string> m_operands;
    std::string m_result;
    std::string m_dots;
    Shape m_dotSizes;
};

void einsum(Translation& t, std::string_view) {
    constexpr std::size_t kLongest = 1000;
    const std::string_view text = t.text("equation");
    t.require(text.size() <= kLongest, "the einsum equation is too long");
    Equation(t, text).translate();
}

// --- windows ------------------------------------------------------------------------------------

/// Strides, pads and dilations over `kernel`, with automatic padding worked out.
struct Window {
    Ints kernel, strides, pads, dilations;

    Attributes attributes() const {
        return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}};
    }
};

Ints windowList(const Translation& t, std::string_view name, std::size_t count,
                std::int64_t fallback) {
    constexpr std::int64_t kLargest = std::int64_t{1} << 20; // products stay within 64 bits
    Ints values = t.integers(name).value_or(Ints(count, fallback));
    t.require(values.size() == count, fmt::format("{} must have {} entries", name, count));
    t.require(std::ranges::all_of(values, [](auto v) { return v >= -kLargest && v <= kLargest; }),
              fmt::format("{} is out of range", name));
    return values;
}

Window windowOf(const Translation& t, Ints kernel) {
    const std::size_t n = kernel.size();
    Window w{std::move(kernel), windowList(t, "strides", n, 1), windowList(t, "pads", 2 * n, 0),
             windowList(t, "dilations", n, 1)};
    t.require(std::ranges::all_of(w.strides, [](auto s) { return s > 0; }) &&
                  std::ranges::all_of(w.dilations, [](auto d) { return d > 0; }),
              "strides and dilations must be positive");
    return w;
}

/// Splits what must be padded over both ends; the odd one goes where `auto_pad` says.
void setPads(Window& w, std::size_t i, std::int64_t total, bool upper) {
    const std::int64_t small = total / 2, large = total - small;
    w.pads[i] = upper ? small : large;
    w.pads[i + w.kernel.size()] = upper ? large : small;
}

/// SAME: as many windows as strides fit the image. VALID: no padding.
void resolveAutoPad(const Translation& t, Window& w) {
    const std::string_view mode = t.text("auto_pad", "NOTSET");
    if (mode == "VALID") w.pads.assign(2 * w.kernel.size(), 0);
    if (mode != "SAME_UPPER" && mode != "SAME_LOWER") return;
    for (std::size_t i = 0; i < w.kernel.size(); ++i) {
        const std::int64_t in = t.shape(0)[i + 2];
        const std::int64_t out = (in + w.strides[i] - 1) / w.strides[i];
        const std::int64_t span = (w.kernel[i] - 1) * w.dilations[i] + 1;
        const std::int64_t total = std::max<std::int64_t>((out - 1) * w.strides[i] + span - in, 0);
        setPads(w, i, total, mode == "SAME_UPPER");
    }
}

Ints spatialOf(const Shape& shape) {
    return {shape.begin() + 2, shape.end()};
}

std::vector<TensorId> imageKernelBias(const Translation& t, std::size_t kernel, std::size_t bias) {
    t.require(t.rank(0) >= 3 && t.rank(kernel) == t.rank(0), "image and kernel ranks do not fit");
    std::vector<TensorId> operands{t.input(0), t.input(kernel)};
    if (t.has(bias)) {
        t.require(t.rank(bias) == 1, "the bias must have one dimension");
        operands.push_back(t.input(bias));
    }
    return operands;
}

Attributes convolution(const Translation& t, std::size_t kernel) {
    Window window = windowOf(t, spatialOf(t.shape(kernel)));
    resolveAutoPad(t, window);
    Attributes attributes = window.attributes();
    attributes.set("group", t.integer("group", 1));
    return attributes;
}

void conv(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 1, 2);
    t.result(OpKind::Conv, convolution(t, 1), std::move(operands));
}

/// com.microsoft: a convolution, optionally a sum with Z, then an activation.
void fusedConv(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 1, 2);
    TensorId y = t.step(OpKind::Conv, convolution(t, 1), std::move(operands));
    if (t.has(3)) y = t.step(OpKind::Elementwise, functionOf("add"), {y, t.input(3)});
    t.result(OpKind::Elementwise, functionOf("relu"), {y});
}

void convInteger(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 1, 99); // no bias
    t.result(OpKind::Conv, convolution(t, 1), std::move(operands), DType::I32);
}

void qLinearConv(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 3, 8);
    const DType dtype = t.has(7) ? t.dtype(7) : t.dtype(0);
    const TensorId sums = t.step(OpKind::Conv, convolution(t, 3), std::move(operands), DType::I32);
    t.result(OpKind::Elementwise, quantizeTo(dtype), {sums});
}

void convTranspose(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 1, 2);
    Window w = windowOf(t, spatialOf(t.shape(1)));
    const std::size_t n = w.kernel.size();
    const Ints extra = windowList(t, "output_padding", n, 0);
    const std::string_view mode = t.text("auto_pad", "NOTSET");
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    const auto wanted = t.integers("output_shape");
    if (mode == "VALID") w.pads.assign(2 * n, 0);
    for (std::size_t i = 0; i < n && (wanted || same); ++i) {
        const std::int64_t in = t.shape(0)[i + 2];
        t.require(!wanted || wanted->size() >= n, "output_shape is too short");
        const std::int64_t out = wanted ? (*wanted)[wanted->size() - n + i] : in * w.strides[i];
        t.require(out >= 0 && out < std::int64_t{1} << 40, "output_shape is out of range");
        const std::int64_t total =
            w.strides[i] * (in - 1) + extra[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - out;
        setPads(w, i, total, mode != "SAME_LOWER");
    }
    Attributes attributes = w.attributes();
    attributes.set("group", t.integer("group", 1));
    attributes.set("output_padding", extra);
    t.result(OpKind::ConvTranspose, std::move(attributes), std::move(operands));
}

void pool(Translation& t, std::string_view mode) {
    t.require(t.rank(0) >= 3, "pooling needs an image");
    const auto n = static_cast<std::size_t>(t.rank(0) - 2);
    Window w = windowOf(t, windowList(t, "kernel_shape", n, 1));
    resolveAutoPad(t, w);
    Attributes attributes = w.attributes();
    attributes.set("kernel", w.kernel);
    attributes.set("mode", std::string(mode));
    attributes.set("ceil_mode", std::int64_t{t.integer("ceil_mode", 0) != 0});
    const TensorId y = t.result(OpKind::Pool, std::move(attributes), {t.input(0)});
    t.opaqueOutput(1, TensorSpec{DType::I64, t.specOf(y).shape}); // where the maxima were
}

void globalPool(Translation& t, std::string_view mode) {
    t.result(OpKind::GlobalPool, {{"mode", std::string(mode)}}, {t.input(0)});
}

} // namespace

std::vector<Rule> contractionRules() {
    return {
        {"MatMul", matMul},
        {"Gemm", gemm},
        {"FusedMatMul", fusedMatMul},
        {"TransposeMatMul", fusedMatMul},
        {"MatMulInteger", matMulInteger},
        {"QLinearMatMul", qLinearMatMul},
        {"MatMulNBits", matMulNBits},
        {"Einsum", einsum},
        {"Conv", conv},
        {"FusedConv", fusedConv},
        {"ConvInteger", convInteger},
        {"QLinearConv", qLinearConv},
        {"ConvTranspose", convTranspose},
        {"MaxPool", pool, "max"},
        {"AveragePool", pool, "average"},
        {"LpPool", pool, "lp"},
        {"GlobalMaxPool", globalPool, "max"},
        {"GlobalAveragePool", globalPool, "average"},
        {"GlobalLpPool", globalPool, "lp"},
    };
}

} // namespace shardlens::onnx
