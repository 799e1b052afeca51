// SPDX-License-Identifier: Apache-2.0
// Products and einsum. Quantised forms become the product with 32-bit sums and a requantisation of
// its own, so that partial sums are seen to be reduced before the rounding.
#include "core/import/element_functions.h"
#include "core/import/onnx_quantized.h"
#include "core/import/onnx_translation.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

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

Attributes scaleBy(double factor) {
    return {{"function", std::string("scale")}, {"alpha", factor}};
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
        t.result(OpKind::Elementwise, scaleBy(alpha), {product});
        return;
    }
    if (alpha != 1) product = t.step(OpKind::Elementwise, scaleBy(alpha), {product});
    TensorId added = t.input(2);
    if (beta != 1) added = t.step(OpKind::Elementwise, scaleBy(beta), {added});
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
    t.result(OpKind::Elementwise, scaleBy(t.number("alpha", 1)), {product});
}

/// Zero points are one number, or one a row of A, a column of B.
void matMulInteger(Translation& t, std::string_view) {
    const TensorId a = withoutZeroPoint(t, 0, 2, -2), b = withoutZeroPoint(t, 1, 3, -1);
    t.result(OpKind::MatMul, {}, {a, b}, DType::I32);
}

void qLinearMatMul(Translation& t, std::string_view) {
    const TensorId a = withoutZeroPoint(t, 0, 2, -2), b = withoutZeroPoint(t, 3, 5, -1);
    requantize(t, t.step(OpKind::MatMul, {}, {a, b}, DType::I32), {1, 4, 6, 7}, -1);
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

} // namespace

std::vector<Rule> contractionRules() {
    return {
        {"MatMul", matMul},
        {"Gemm", gemm},
        {"FusedMatMul", fusedMatMul},
        {"TransposeMatMul", fusedMatMul},
        {"MatMulInteger", matMulInteger},
        {"QLinearMatMul", qLinearMatMul},
        {"Einsum", einsum},
    };
}

} // namespace shardlens::onnx
