// SPDX-License-Identifier: Apache-2.0
// A float that is returned updated is a weight or a moment of the optimizer. The metadata tells
// which (`state.params[…]`, `state.opt_state[0].mu[…]`); without it, what comes back as three equal
// lists of tensors is Adam's weights, first and second moments, in the order of optax and Flax.
#include "core/import/hlo_roles.h"

#include "core/import/hlo_attributes.h"
#include "core/import/text.h"

#include <algorithm>
#include <numeric>

namespace shardlens::hlo {

namespace {

struct EntryLeaf {
    const TensorSpec* spec = nullptr;
    const Instruction* parameter = nullptr;
    bool updated = false;
    bool isFloatLeaf() const { return spec && isFloat(spec->dtype); }
};

/// The leaf that a path such as {2, 0} leads to, counted from the left.
std::size_t leafAt(const Type& type, std::span<const std::int64_t> path) {
    if (path.empty() || type.kind != Type::Kind::Tuple) return 0;
    if (path[0] < 0 || path[0] >= static_cast<std::int64_t>(type.parts.size())) return 0;
    const Type& part = type.parts[static_cast<std::size_t>(path[0])];
    return part.before + leafAt(part, path.subspan(1));
}

class Entry {
public:
    explicit Entry(const Module& module)
        : m_module(module), m_computation(module.computations[module.entry]) {
        for (const std::uint32_t index : m_computation.parameters) {
            const Instruction& parameter = m_computation.instructions[index];
            m_first.push_back(leaves.size());
            std::vector<const TensorSpec*> specs;
            appendLeaves(parameter.type, specs);
            for (const TensorSpec* spec : specs) leaves.push_back({spec, &parameter, false});
        }
    }

    /// `input_output_alias={ {0}: (0, {}, may-alias), {1, 2}: (3, {0}, must-alias) }`
    bool markAliases() {
        std::string_view text = m_module.attribute("input_output_alias");
        bool any = false;
        for (std::size_t at = text.find('('); at != std::string_view::npos; at = text.find('(')) {
            text.remove_prefix(at + 1);
            const auto numbers = integersIn(text.substr(0, text.find(')')));
            if (!numbers || numbers->empty()) continue;
            const std::int64_t number = (*numbers)[0];
            if (number < 0 || number >= static_cast<std::int64_t>(m_first.size())) continue;
            const auto parameter = static_cast<std::size_t>(number);
            const Type& type = m_computation.instructions[m_computation.parameters[parameter]].type;
            leaves[std::min(m_first[parameter] + leafAt(type, std::span(*numbers).subspan(1)),
                            leaves.size() - 1)]
                .updated = any = true;
        }
        return any;
    }

    /// Without aliases: what the result's first leaves have the types of, one by one.
    void markEqualPrefix() {
        std::vector<const TensorSpec*> results;
        appendLeaves(m_computation.instructions[m_computation.root].type, results);
        for (std::size_t i = 0; i < std::min(results.size(), leaves.size()); ++i) {
            if (!results[i] || !leaves[i].spec || *results[i] != *leaves[i].spec) return;
            leaves[i].updated = true;
        }
    }

    double elements(bool updatedOnly) const {
        return std::accumulate(
            leaves.begin(), leaves.end(), 0.0, [&](double sum, const EntryLeaf& leaf) {
                const bool counts = leaf.isFloatLeaf() && (leaf.updated || !updatedOnly);
                return counts ? sum + elementsOf(leaf.spec->shape) : sum;
            });
    }

    std::vector<EntryLeaf> leaves;

private:
    const Module& m_module;
    const Computation& m_computation;
    std::vector<std::size_t> m_first; ///< leaf of each parameter
};

bool holdsBackward(const Module& module) {
    return std::ranges::any_of(module.computations, [](const Computation& computation) {
        return std::ranges::any_of(computation.instructions, [](const Instruction& instruction) {
            return phaseOf(instruction) == Phase::Backward;
        });
    });
}

/// Thirds with equal types: weights, first moments, second moments.
bool threeEqualLists(const std::vector<EntryLeaf>& leaves, const std::vector<std::size_t>& floats) {
    const std::size_t third = floats.size() / 3;
    if (third == 0 || floats.size() % 3 != 0) return false;
    for (std::size_t i = 0; i < third; ++i)
        for (const std::size_t list : {third, 2 * third})
            if (leaves[floats[i]].spec->shape != leaves[floats[i + list]].spec->shape) return false;
    return true;
}

} // namespace

std::string_view opNameOf(const Instruction& instruction) {
    constexpr std::string_view kKey = "op_name=\"";
    const std::string_view metadata = instruction.attribute("metadata");
    const std::size_t at = metadata.find(kKey);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = metadata.substr(at + kKey.size());
    for (std::size_t i = 0; i < rest.size(); ++i) {
        if (rest[i] == '\\')
            ++i;
        else if (rest[i] == '"')
            return rest.substr(0, i);
    }
    return {};
}

Phase phaseOf(const Instruction& instruction) {
    const std::string_view name = opNameOf(instruction);
    if (name.empty()) return Phase::Unnamed;
    if (contains(name, "rematted_computation")) return Phase::Recompute;
    if (contains(name, "transpose(jvp(")) return Phase::Backward;
    if (contains(name, "jvp(")) return Phase::Forward;
    return Phase::Other;
}

Roles rolesOf(const Module& module) {
    Entry entry(module);
    Roles roles;
    roles.leaves.assign(entry.leaves.size(), Role::Data);
    roles.backward = holdsBackward(module);
    if (entry.leaves.empty()) return roles;
    if (!entry.markAliases() && roles.backward) entry.markEqualPrefix();
    // A cache that comes back updated makes no train step of an inference step: there most floats
    // are weights that do not come back.
    const double updated = entry.elements(true);
    const bool trainStep = updated > 0 && 2 * updated > entry.elements(false);
    roles.backward = roles.backward || trainStep;
    std::vector<std::size_t> floats;
    bool named = false;
    for (std::size_t i = 0; i < entry.leaves.size(); ++i) {
        const EntryLeaf& leaf = entry.leaves[i];
        if (!leaf.isFloatLeaf()) continue;
        if (trainStep ? leaf.updated : !leaf.updated && !leaf.spec->shape.empty())
            floats.push_back(i);
        named = named || contains(opNameOf(*leaf.parameter), "opt_state");
    }
    const bool adam = trainStep && !named && threeEqualLists(entry.leaves, floats);
    for (std::size_t i = 0; i < floats.size(); ++i) {
        const bool moment =
            named ? contains(opNameOf(*entry.leaves[floats[i]].parameter), "opt_state")
                  : adam && i >= floats.size() / 3;
        roles.leaves[floats[i]] = moment ? Role::Optimizer : Role::Weight;
    }
    return roles;
}

} // namespace shardlens::hlo
