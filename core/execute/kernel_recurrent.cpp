// SPDX-License-Identifier: Apache-2.0
// Recurrent cells, equations and gate order of ONNX's LSTM (iofc), GRU (zrh) and RNN. Entries of a
// batch end where their lengths say: later steps give 0 and leave the state as it is.
#include "core/execute/kernel_recorded.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace shardlens::kernels {

namespace {

template <typename T>
using CellFunction = std::function<T(const T&)>;

struct Named {
    std::string name;
    double alpha = 0, beta = 0;
    bool hasAlpha = false, hasBeta = false;
};

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> names;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t comma = std::min(list.find(',', at), list.size());
        names.push_back(list.substr(at, comma - at));
        at = comma + 1;
    }
    return names;
}

/// The activations of all directions. Alphas and betas are handed out to those that take one, in
/// order.
std::vector<Named> activationsOf(const Attributes& attributes, std::size_t directions) {
    const std::string cell = attributes.text("cell", "lstm");
    std::string list = attributes.text("activations");
    if (list.empty()) {
        const std::string one = cell == "lstm"  ? "Sigmoid,Tanh,Tanh"
                                : cell == "gru" ? "Sigmoid,Tanh"
                                                : "Tanh";
        list = directions == 2 ? one + "," + one : one;
    }
    const Numbers alphas = attributes.numbers("alphas"), betas = attributes.numbers("betas");
    std::vector<Named> named;
    std::size_t nextAlpha = 0, nextBeta = 0;
    for (std::string& name : split(list)) {
        std::ranges::transform(name, name.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
        Named n{name};
        const bool both = name == "affine" || name == "scaledtanh" || name == "hardsigmoid";
        const bool alpha =
            both || name == "leakyrelu" || name == "thresholdedrelu" || name == "elu";
        if (alpha && nextAlpha < alphas.size()) {
            n.alpha = alphas[nextAlpha++];
            n.hasAlpha = true;
        }
        if (both && nextBeta < betas.size()) {
            n.beta = betas[nextBeta++];
            n.hasBeta = true;
        }
        named.push_back(std::move(n));
    }
    return named;
}

template <typename T>
CellFunction<T> functionOf(const KernelContext& context, const Named& named) {
    const double alpha = named.hasAlpha ? named.alpha : 1, beta = named.hasBeta ? named.beta : 1;
    const ScalarFunction* tanh = findScalarFunction("tanh");
    if (named.name == "affine")
        return [alpha, shift = named.hasBeta ? named.beta : 0](const T& x) {
            return x * T(alpha) + T(shift);
        };
    if (named.name == "scaledtanh")
        return [alpha, beta, tanh](const T& x) {
            return T(alpha) * applied(*tanh, ScalarSettings{}, x * T(beta));
        };
    const ScalarFunction* function = findScalarFunction(named.name);
    if (function == nullptr) fail(context, "there is no activation '" + named.name + "'");
    ScalarSettings settings = scalarSettings(*function, {}, DType::F64, DType::F64);
    if (named.hasAlpha) settings.alpha = named.alpha;
    if (named.hasBeta) settings.beta = named.beta;
    if (named.name == "thresholdedrelu" && !named.hasAlpha) settings.alpha = 1;
    return [function, settings](const T& x) { return applied(*function, settings, x); };
}

/// The local sizes, and one direction's numbers in turn.
template <typename T>
class Cell {
public:
    Cell(const KernelContext& context, Operands operands, const NumberLists<T>& numbers)
        : m_context(context), m_operands(operands), m_numbers(numbers) {
        const Shape x = context.operandShape(0), w = context.operandShape(1);
        m_steps = size(x[0]);
        m_batch = size(x[1]);
        m_input = size(x[2]);
        m_directions = size(w[0]);
        m_hidden = size(context.operandShape(2)[2]);
        m_gates = size(w[1]) / m_hidden;
        const Attributes& a = context.op().attributes;
        m_isGru = a.text("cell", "lstm") == "gru";
        m_clip = a.number("clip", 0);
        m_resetAfter = a.integer("linear_before_reset", 0) != 0;
        m_coupled = a.integer("input_forget", 0) != 0;
    }

    NumberLists<T> run() {
        const std::size_t states = m_directions * m_batch * m_hidden;
        NumberLists<T> results(m_gates == 4 ? 3 : 2, std::vector<T>(states, T(0)));
        results[0].assign(m_steps * states, T(0));
        for (std::size_t d = 0; d < m_directions; ++d)
            for (std::size_t b = 0; b < m_batch; ++b) runEntry(d, b, results);
        return results;
    }

private:
    static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
    bool has(std::size_t i) const { return hasOperand(m_operands, i); }

    void chooseDirection(std::size_t d) {
        const std::string direction = m_context.op().attributes.text("direction", "forward");
        const bool both = direction == "bidirectional";
        const std::size_t whole = d + size(m_context.operandBegin(1, 0));
        m_backwards = both ? whole == 1 : direction == "reverse";
        const auto named = activationsOf(m_context.op().attributes, both ? 2 : 1);
        const std::size_t each = m_gates == 4 ? 3 : m_isGru ? 2 : 1;
        if (named.size() < (both ? 2 : 1) * each) fail(m_context, "activations are missing");
        m_functions.clear();
        for (std::size_t i = 0; i < each; ++i)
            m_functions.push_back(functionOf<T>(m_context, named[(both ? whole : 0) * each + i]));
        m_direction = d;
    }

    std::size_t stateAt(std::size_t b) const { return (m_direction * m_batch + b) * m_hidden; }
    std::vector<T> initial(std::size_t operand, std::size_t b) const {
        if (!has(operand)) return std::vector<T>(m_hidden, T(0));
        const auto first = m_numbers[operand].begin() + static_cast<std::ptrdiff_t>(stateAt(b));
        return {first, first + static_cast<std::ptrdiff_t>(m_hidden)};
    }

    void runEntry(std::size_t d, std::size_t b, NumberLists<T>& results) {
        chooseDirection(d);
        m_h = initial(5, b);
        m_c = initial(6, b);
        const std::size_t length =
            has(4) ? std::min(size(m_operands[4]->ints[b]), m_steps) : m_steps;
        for (std::size_t k = 0; k < length; ++k) {
            const std::size_t t = m_backwards ? length - 1 - k : k;
            step(t, b);
            std::ranges::copy(m_h, results[0].begin() +
                                       static_cast<std::ptrdiff_t>(
                                           t * m_directions * m_batch * m_hidden + stateAt(b)));
        }
        std::ranges::copy(m_h, results[1].begin() + static_cast<std::ptrdiff_t>(stateAt(b)));
        if (m_gates == 4)
            std::ranges::copy(m_c, results[2].begin() + static_cast<std::ptrdiff_t>(stateAt(b)));
    }

    /// Row `row` of W times x, plus its bias.
    T fromInput(std::size_t row, std::size_t t, std::size_t b) const {
        T sum = bias(row);
        const std::size_t w = (m_direction * m_gates * m_hidden + row) * m_input,
                          x = (t * m_batch + b) * m_input;
        for (std::size_t i = 0; i < m_input; ++i)
            sum = sum + m_numbers[1][w + i] * m_numbers[0][x + i];
        return sum;
    }
    /// Row `row` of R times a state, plus its bias.
    T fromState(std::size_t row, const std::vector<T>& h) const {
        T sum = bias(m_gates * m_hidden + row);
        const std::size_t r = (m_direction * m_gates * m_hidden + row) * m_hidden;
        for (std::size_t i = 0; i < m_hidden; ++i) sum = sum + m_numbers[2][r + i] * h[i];
        return sum;
    }
    T bias(std::size_t row) const {
        return has(3) ? m_numbers[3][m_direction * 2 * m_gates * m_hidden + row] : T(0);
    }
    T peephole(std::size_t gate, std::size_t i, const T& c) const {
        return has(7) ? m_numbers[7][(m_direction * 3 + gate) * m_hidden + i] * c : T(0);
    }
    T activated(std::size_t function, const T& x) const {
        return m_functions[function](m_clip > 0 ? clamped(x, -m_clip, m_clip) : x);
    }

    void step(std::size_t t, std::size_t b) {
        std::vector<T> input(m_gates * m_hidden, T(0));
        for (std::size_t row = 0; row < input.size(); ++row) input[row] = fromInput(row, t, b);
        if (m_gates == 4)
            lstmStep(input);
        else if (m_isGru)
            gruStep(input);
        else
            for (const std::vector<T> before = m_h; T & h : m_h) {
                const auto i = static_cast<std::size_t>(&h - m_h.data());
                h = activated(0, input[i] + fromState(i, before));
            }
    }

    void lstmStep(const std::vector<T>& input) {
        const std::vector<T> before = m_h;
        for (std::size_t i = 0; i < m_hidden; ++i) {
            const auto gate = [&](std::size_t g) {
                const std::size_t row = g * m_hidden + i;
                return input[row] + fromState(row, before);
            };
            const T in = activated(0, gate(0) + peephole(0, i, m_c[i]));
            const T forget = m_coupled ? T(1) - in : activated(0, gate(2) + peephole(2, i, m_c[i]));
            m_c[i] = forget * m_c[i] + in * activated(1, gate(3));
            const T out = activated(0, gate(1) + peephole(1, i, m_c[i]));
            m_h[i] = out * m_functions[2](m_c[i]);
        }
    }

    void gruStep(const std::vector<T>& input) {
        std::vector<T> update, reset, state = m_h;
        for (std::size_t i = 0; i < m_hidden; ++i) {
            update.push_back(activated(0, input[i] + fromState(i, m_h)));
            reset.push_back(activated(0, input[m_hidden + i] + fromState(m_hidden + i, m_h)));
            if (!m_resetAfter) state[i] = reset[i] * m_h[i];
        }
        std::vector<T> next;
        for (std::size_t i = 0; i < m_hidden; ++i) {
            const std::size_t row = 2 * m_hidden + i;
            T hidden = fromState(row, state);
            if (m_resetAfter) hidden = reset[i] * hidden;
            const T candidate = activated(1, input[row] + hidden);
            next.push_back((T(1) - update[i]) * candidate + update[i] * m_h[i]);
        }
        m_h = std::move(next);
    }

    const KernelContext& m_context;
    Operands m_operands;
    const NumberLists<T>& m_numbers;
    std::size_t m_steps = 0, m_batch = 0, m_input = 0, m_directions = 0, m_hidden = 0, m_gates = 0;
    bool m_isGru = false, m_resetAfter = false, m_coupled = false, m_backwards = false;
    double m_clip = 0;
    std::size_t m_direction = 0;
    std::vector<CellFunction<T>> m_functions;
    std::vector<T> m_h, m_c;
};

struct RecurrentProgram {
    template <typename T>
    NumberLists<T> operator()(const KernelContext& context, Operands operands,
                              const NumberLists<T>& numbers) const {
        return Cell<T>(context, operands, numbers).run();
    }
};

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> recurrentKernels() {
    return {kernels::recordedKernel<kernels::RecurrentProgram>(OpKind::Recurrent)};
}

} // namespace shardlens
