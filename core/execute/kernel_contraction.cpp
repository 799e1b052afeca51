// SPDX-License-Identifier: Apache-2.0
// Matrix products and einsum: both are a sum of products over one index space in which every
// operand has its own strides, forward as backward.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <map>

namespace shardlens::kernels {

namespace {

/// result[r(p)] = sum over the points p of the product of operand_i[o_i(p)].
struct Contraction {
    Shape space;
    std::vector<Strides> operands;
    Strides result;
};

void addProducts(const Contraction& sum, const std::vector<Numbers>& operands, Numbers& result) {
    std::vector<Strides> strides = sum.operands;
    strides.push_back(sum.result);
    for (StridedWalk at(sum.space, std::move(strides)); !at.done(); at.next()) {
        double product = 1;
        for (std::size_t i = 0; i < operands.size(); ++i) product *= operands[i][at[i]];
        result[at[operands.size()]] += product;
    }
}

/// The gradient of operand i is the contraction of the others with that of the result.
Numbers gradientOfFactor(const Contraction& sum, std::vector<Numbers> operands, std::size_t i,
                         const Numbers& gradient) {
    Contraction turned = sum;
    std::swap(turned.operands[i], turned.result);
    Numbers result(operands[i].size(), 0.0);
    operands[i] = gradient;
    addProducts(turned, operands, result);
    return result;
}

// --- MatMul -------------------------------------------------------------------------------------

/// Strides of the last two dims, with the dims a rank-1 operand lacks as 0.
struct MatrixStrides {
    Strides batch;
    std::ptrdiff_t row = 0, column = 0;
};

MatrixStrides matrixStrides(const Shape& shape, bool transposed, bool isLeft, const Shape& batch) {
    if (shape.size() == 1)
        return isLeft ? MatrixStrides{Strides(batch.size(), 0), 0, 1}
                      : MatrixStrides{Strides(batch.size(), 0), 1, 0};
    const Strides own = signedStrides(shape);
    MatrixStrides strides;
    strides.batch.assign(batch.size(), 0);
    const std::size_t lead = batch.size() + 2 - shape.size();
    for (std::size_t d = 0; d + 2 < shape.size(); ++d)
        if (shape[d] != 1) strides.batch[lead + d] = own[d];
    strides.row = own[shape.size() - 2];
    strides.column = own[shape.size() - 1];
    if (transposed) std::swap(strides.row, strides.column);
    return strides;
}

/// The space is [batch.., m, n, k].
Contraction matMul(const KernelContext& context) {
    const Attributes& attributes = context.op().attributes;
    const bool turnA = attributes.integer("transA", 0) != 0,
               turnB = attributes.integer("transB", 0) != 0;
    const Shape a = context.operandShape(0), b = context.operandShape(1);
    Shape result = context.resultShape(0);
    if (a.size() == 1) result.insert(result.end() - (b.size() == 1 ? 0 : 1), 1);
    if (b.size() == 1) result.push_back(1);
    const Shape batch(result.begin(), result.end() - 2);
    const MatrixStrides left = matrixStrides(a, turnA, true, batch),
                        right = matrixStrides(b, turnB, false, batch);
    const auto strides = [](Strides lead, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k) {
        lead.insert(lead.end(), {m, n, k});
        return lead;
    };
    Contraction sum;
    sum.space = result;
    sum.space.push_back(a.size() > 1 && turnA ? a[a.size() - 2] : a.back());
    sum.operands = {strides(left.batch, left.row, 0, left.column),
                    strides(right.batch, 0, right.column, right.row)};
    sum.result = signedStrides(result);
    sum.result.push_back(0);
    return sum;
}

Arrays matMulForward(const KernelContext& context, Operands operands) {
    Numbers result(countOf(context.resultShape(0)), 0.0);
    addProducts(matMul(context), {numbersOf(*operands[0]), numbersOf(*operands[1])}, result);
    if (hasOperand(operands, 2) && context.leads()) {
        const Shape shape = context.resultShape(0);
        for (StridedWalk at(shape,
                            {signedStrides(shape), broadcastStrides(operands[2]->shape, shape)});
             !at.done(); at.next())
            result[at[0]] += operands[2]->at(at[1]);
    }
    return {resultOf(context, 0, std::move(result))};
}

/// Gradients of the factors of a contraction; `factors` operands are multiplied.
Arrays factorGradients(const Contraction& sum, Operands operands, std::size_t factors,
                       const Array& gradient) {
    Arrays results = noGradients(operands);
    std::vector<Numbers> numbers;
    for (std::size_t i = 0; i < factors; ++i) numbers.push_back(numbersOf(*operands[i]));
    for (std::size_t i = 0; i < factors; ++i)
        if (differentiable(operands, i))
            results[i] =
                realArray(operands[i]->shape, gradientOfFactor(sum, numbers, i, gradient.reals));
    return results;
}

Arrays matMulBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                      std::span<const Array> gradients) {
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr) return noGradients(operands);
    Arrays results = factorGradients(matMul(context), operands, 2, *gradient);
    if (differentiable(operands, 2)) results[2] = summedTo(*gradient, operands[2]->shape);
    return results;
}

// --- Einsum -------------------------------------------------------------------------------------

Contraction einsum(const KernelContext& context) {
    std::vector<std::string> terms{""};
    for (const char c : context.op().attributes.text("equation")) {
        if (c == ',' || c == '>')
            terms.emplace_back();
        else if (c != ' ' && c != '-')
            terms.back().push_back(c);
    }
    const std::string result = terms.back();
    terms.pop_back();
    // The result's letters first, so that each element of it is finished before the next.
    std::string letters = result;
    std::map<char, std::int64_t> sizes;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const Shape shape = context.operandShape(i);
        for (std::size_t d = 0; d < shape.size(); ++d) {
            sizes[terms[i][d]] = shape[d];
            if (letters.find(terms[i][d]) == std::string::npos) letters.push_back(terms[i][d]);
        }
    }
    const auto strides = [&](const std::string& term, const Shape& shape) {
        const Strides own = signedStrides(shape);
        Strides all(letters.size(), 0);
        for (std::size_t d = 0; d < term.size(); ++d) all[letters.find(term[d])] += own[d];
        return all;
    };
    Contraction sum;
    for (const char letter : letters) sum.space.push_back(sizes[letter]);
    for (std::size_t i = 0; i < terms.size(); ++i)
        sum.operands.push_back(strides(terms[i], context.operandShape(i)));
    sum.result = strides(result, context.resultShape(0));
    return sum;
}

Arrays einsumForward(const KernelContext& context, Operands operands) {
    Numbers result(countOf(context.resultShape(0)), 0.0);
    std::vector<Numbers> numbers;
    for (const Array* operand : operands) numbers.push_back(numbersOf(*operand));
    addProducts(einsum(context), numbers, result);
    return {resultOf(context, 0, std::move(result))};
}

Arrays einsumBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                      std::span<const Array> gradients) {
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr) return noGradients(operands);
    return factorGradients(einsum(context), operands, operands.size(), *gradient);
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> contractionKernels() {
    using namespace kernels;
    return {
        {OpKind::MatMul, matMulForward, matMulBackward},
        {OpKind::Einsum, einsumForward, einsumBackward},
        attentionKernel(),
    };
}

} // namespace shardlens
