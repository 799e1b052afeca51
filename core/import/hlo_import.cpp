// SPDX-License-Identifier: Apache-2.0
// The steps of an import, and the facts a module states about itself.
#include "core/import/hlo_import.h"

#include "core/import/hlo_loops.h"
#include "core/import/hlo_translation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardlens {

namespace {

using namespace hlo;

class Facts {
public:
    explicit Facts(const Module& module) : m_module(module) {}

    std::map<std::string, std::string> of(const Roles& roles, std::int64_t devices) {
        for (const Computation& computation : m_module.computations)
            for (const Instruction& instruction : computation.instructions)
                count(computation, instruction);
        set("instructions", m_instructions);
        set("computations", m_module.computations.size());
        set("dots", m_dots);
        if (m_fusions > 0) set("fusions", m_fusions);
        set("sharding annotations", m_shardings);
        set("while loops", m_trips.size());
        if (!m_trips.empty()) m_facts["trip counts"] = fmt::format("{}", fmt::join(m_trips, ", "));
        for (const auto& [kind, number] : m_collectives) set(kind, number);
        if (devices > 1) m_facts["devices"] = fmt::format("{}", devices);
        phases();
        entry(roles);
        return std::move(m_facts);
    }

private:
    void set(const std::string& name, std::size_t value) {
        m_facts[name] = fmt::format("{}", value);
    }

    void count(const Computation& computation, const Instruction& instruction) {
        ++m_instructions;
        if (instruction.opcode == "dot") ++m_dots;
        if (instruction.opcode == "fusion") ++m_fusions;
        if (instruction.has("sharding")) ++m_shardings;
        if (const auto kind = collectiveOf(instruction.opcode); !kind.empty())
            ++m_collectives[std::string(kind)];
        if (instruction.opcode == "while") {
            const auto trips = tripCount(m_module, computation, instruction);
            m_trips.push_back(trips ? fmt::format("{}", *trips) : "unknown");
        }
        ++m_phases[static_cast<std::size_t>(phaseOf(instruction))];
    }

    void phases() {
        const std::size_t unnamed = m_phases[static_cast<std::size_t>(Phase::Unnamed)];
        if (unnamed == m_instructions) return;
        const auto tell = [&](const char* name, Phase phase) {
            set(name, m_phases[static_cast<std::size_t>(phase)]);
        };
        tell("forward instructions", Phase::Forward);
        tell("backward instructions", Phase::Backward);
        tell("recompute instructions", Phase::Recompute);
        tell("other named instructions", Phase::Other);
        tell("unnamed instructions", Phase::Unnamed);
    }

    void entry(const Roles& roles) {
        const Computation& computation = m_module.computations[m_module.entry];
        std::vector<const TensorSpec*> leaves;
        for (const std::uint32_t index : computation.parameters)
            appendLeaves(computation.instructions[index].type, leaves);
        struct Sum {
            double elements = 0, bytes = 0;
        };
        Sum all, floats, weights, optimizer;
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            if (!leaves[i]) continue;
            const auto add = [&](Sum& sum) {
                sum.elements += elementsOf(leaves[i]->shape);
                sum.bytes += bytesOf(*leaves[i]);
            };
            add(all);
            if (roles.leaves[i] == Role::Weight) add(weights);
            if (roles.leaves[i] == Role::Optimizer) add(optimizer);
            if (roles.leaves[i] != Role::Data) add(floats);
        }
        const auto tell = [&](const std::string& name, double value) {
            m_facts[name] = fmt::format("{:.0f}", value);
        };
        set("entry parameters", computation.parameters.size());
        tell("entry parameter elements", all.elements);
        tell("entry parameter bytes", all.bytes);
        tell("weight elements", weights.elements);
        if (optimizer.elements == 0) return;
        tell("optimizer state elements", optimizer.elements);
        tell("weight and optimizer bytes", floats.bytes);
    }

    const Module& m_module;
    std::map<std::string, std::string> m_facts;
    std::size_t m_instructions = 0, m_dots = 0, m_fusions = 0, m_shardings = 0;
    std::array<std::size_t, 5> m_phases{};
    std::map<std::string, std::size_t> m_collectives;
    std::vector<std::string> m_trips;
};

} // namespace

Graph importHlo(std::string_view text, const std::string& where, const ImportOptions& options) {
    const Module module = parseModule(text, where);
    const Roles roles = rolesOf(module);
    Translation translation(module, roles, options.stop);
    const std::int64_t devices = translation.devices();
    Graph graph = translation.run();
    graph.facts.merge(Facts(module).of(roles, devices));
    return graph;
}

} // namespace shardlens
