// SPDX-License-Identifier: Apache-2.0
// The counter of a loop is the element of its state that the condition compares with a constant.
#include "core/import/hlo_loops.h"

#include "core/error.h"
#include "core/import/hlo_attributes.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shardlens::hlo {

namespace {

constexpr int kMaxDepth = 64;

/// Through ops that keep a scalar as it is.
const Instruction& lookThrough(const Computation& computation, const Instruction* at) {
    while (at->operands.size() == 1 && (at->opcode == "copy" || at->opcode == "convert" ||
                                        at->opcode == "bitcast" || at->opcode == "reshape"))
        at = &computation.instructions[at->operands[0]];
    return *at;
}

const Instruction& operandOf(const Computation& computation, const Instruction& instruction,
                             std::size_t port) {
    return lookThrough(computation, &computation.instructions[instruction.operands[port]]);
}

std::optional<std::int64_t> constantOf(const Instruction& instruction) {
    if (instruction.opcode != "constant" || !instruction.type.spec.shape.empty())
        return std::nullopt;
    std::int64_t value = 0;
    const std::string_view text = instruction.literal;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// k if the instruction is get-tuple-element(parameter 0), index=k.
std::optional<std::int64_t> stateElement(const Computation& computation,
                                         const Instruction& instruction) {
    if (instruction.opcode != "get-tuple-element" || instruction.operands.size() != 1 ||
        computation.instructions[instruction.operands[0]].opcode != "parameter")
        return std::nullopt;
    const auto index = integersIn(instruction.attribute("index"));
    if (!index || index->size() != 1 || (*index)[0] < 0) return std::nullopt;
    return (*index)[0];
}

/// counter `direction` limit keeps the loop running.
struct Condition {
    std::int64_t counter = 0, limit = 0;
    std::string_view direction;
};

std::optional<Condition> conditionOf(const Computation& computation) {
    const Instruction& root = lookThrough(computation, &computation.instructions[computation.root]);
    if (root.opcode != "compare" || root.operands.size() != 2) return std::nullopt;
    for (const bool swapped : {false, true}) {
        const auto counter = stateElement(computation, operandOf(computation, root, swapped));
        const auto limit = constantOf(operandOf(computation, root, !swapped));
        if (!counter || !limit) continue;
        std::string_view direction = root.attribute("direction");
        if (swapped)
            direction = direction == "LT"   ? "GT"
                        : direction == "GT" ? "LT"
                        : direction == "LE" ? "GE"
                        : direction == "GE" ? "LE"
                                            : direction;
        return Condition{*counter, *limit, direction};
    }
    return std::nullopt;
}

/// Element `index` of the tuple an instruction is.
const Instruction* tupleElement(const Computation& computation, const Instruction& tuple,
                                std::int64_t index) {
    if (tuple.opcode != "tuple" || index >= static_cast<std::int64_t>(tuple.operands.size()))
        return nullptr;
    return &operandOf(computation, tuple, static_cast<std::size_t>(index));
}

std::optional<std::int64_t> stepOf(const Computation& body, std::int64_t counter) {
    const Instruction* next = tupleElement(body, body.instructions[body.root], counter);
    if (!next || next->operands.size() != 2) return std::nullopt;
    const bool minus = next->opcode == "subtract";
    if (!minus && next->opcode != "add") return std::nullopt;
    for (const bool swapped : {false, true}) {
        if (minus && swapped) break;
        const auto by = constantOf(operandOf(body, *next, !swapped));
        if (stateElement(body, operandOf(body, *next, swapped)) == counter && by)
            return minus ? -*by : *by;
    }
    return std::nullopt;
}

std::optional<std::int64_t> countOf(std::int64_t first, std::int64_t step, std::int64_t limit,
                                    std::string_view direction) {
    constexpr std::int64_t kSane = std::int64_t{1} << 40;
    if (std::max({first, step, limit}) > kSane || std::min({first, step, limit}) < -kSane)
        return std::nullopt;
    const bool up = step > 0;
    if (direction == "LE") ++limit;
    if (direction == "GE") --limit;
    if (direction == "NE" && (limit - first) % (step == 0 ? 1 : step) != 0) return std::nullopt;
    const bool fits = direction == "NE" || (up ? direction == "LT" || direction == "LE"
                                               : direction == "GT" || direction == "GE");
    if (step == 0 || !fits) return std::nullopt;
    const std::int64_t distance = up ? limit - first : first - limit;
    const std::int64_t stride = up ? step : -step;
    if (distance < 0) return direction == "NE" ? std::nullopt : std::optional<std::int64_t>(0);
    return (distance + stride - 1) / stride;
}

} // namespace

std::optional<std::int64_t> tripCount(const Module& module, const Computation& caller,
                                      const Instruction& loop) {
    const std::string_view config = loop.attribute("backend_config");
    if (const std::size_t at = config.find("known_trip_count"); at != std::string_view::npos) {
        const std::string_view rest = config.substr(at);
        const auto numbers = integersIn(rest.substr(0, rest.find('}')));
        if (numbers && numbers->size() == 1 && (*numbers)[0] >= 0) return (*numbers)[0];
    }
    const Computation* test = module.callee(loop, "condition");
    const Computation* body = module.callee(loop, "body");
    if (!test || !body || loop.operands.size() != 1) return std::nullopt;
    const auto condition = conditionOf(*test);
    if (!condition) return std::nullopt;
    const auto step = stepOf(*body, condition->counter);
    const Instruction* init =
        tupleElement(caller, caller.instructions[loop.operands[0]], condition->counter);
    const auto first = init ? constantOf(*init) : std::nullopt;
    if (!step || !first) return std::nullopt;
    return countOf(*first, *step, condition->limit, condition->direction);
}

bool inlines(const Instruction& instruction) {
    const std::string_view opcode = instruction.opcode;
    return opcode == "call" || opcode == "fusion" || opcode == "async-start" || opcode == "while" ||
           opcode == "conditional";
}

std::vector<const Computation*> inlined(const Module& module, const Instruction& instruction) {
    std::vector<const Computation*> result;
    if (!inlines(instruction)) return result;
    const auto add = [&](std::string_view key) {
        if (const Computation* callee = module.callee(instruction, key)) result.push_back(callee);
    };
    if (instruction.opcode == "while") {
        add("body");
    } else if (instruction.opcode == "call") {
        add("to_apply");
    } else if (instruction.opcode == "conditional") {
        add("true_computation");
        add("false_computation");
        std::string_view branches = instruction.attribute("branch_computations");
        while (!branches.empty()) {
            const std::size_t begin = branches.find_first_not_of("{}, %");
            if (begin == std::string_view::npos) break;
            branches.remove_prefix(begin);
            const std::string_view name = branches.substr(0, branches.find_first_of("}, "));
            const Computation* branch = module.computation(name);
            if (!branch)
                throw InputError("branch " + inQuotes(name) + " is not in the file",
                                 module.place(name));
            result.push_back(branch);
            branches.remove_prefix(name.size());
        }
    } else {
        add("calls");
    }
    return result;
}

namespace {

class Sizes {
public:
    Sizes(const Module& module, double most)
        : m_module(module), m_most(most), m_size(module.computations.size(), kUnknown),
          m_height(module.computations.size(), 0) {}

    std::vector<double> run() {
        for (const Computation& computation : m_module.computations) of(computation);
        return std::move(m_size);
    }

private:
    double of(const Computation& computation) {
        double& size = m_size[m_module.indexOf(computation)];
        int& height = m_height[m_module.indexOf(computation)];
        if (size >= 0) return size;
        if (size == kOpen)
            throw InputError("computation " + inQuotes(computation.name) + " calls itself",
                             m_module.place(computation.name));
        if (++m_open > kMaxDepth) tooDeep(computation);
        size = kOpen;
        double total = 0;
        for (const Instruction& instruction : computation.instructions) {
            double inside = 0;
            for (const Computation* callee : inlined(m_module, instruction)) {
                inside = std::max(inside, of(*callee));
                height = std::max(height, m_height[m_module.indexOf(*callee)] + 1);
            }
            if (instruction.opcode == "while") {
                const auto trips = tripCount(m_module, computation, instruction);
                const double all = inside * static_cast<double>(trips.value_or(1));
                if (all <= m_most) inside = all;
            }
            total += 1 + inside;
        }
        if (height > kMaxDepth) tooDeep(computation);
        --m_open;
        return size = total;
    }

    [[noreturn]] void tooDeep(const Computation& computation) const {
        throw InputError("computations call each other too deeply",
                         m_module.place(computation.name));
    }

    static constexpr double kUnknown = -1, kOpen = -2;
    const Module& m_module;
    double m_most;
    std::vector<double> m_size; ///< never resized: `of` holds references into it
    std::vector<int> m_height;  ///< of the tree of calls below a computation
    int m_open = 0;
};

} // namespace

std::vector<double> writtenOut(const Module& module, double most) {
    return Sizes(module, most).run();
}

} // namespace shardlens::hlo
