// SPDX-License-Identifier: Apache-2.0
// Layouts of operands and results as they follow from a choice and a factor rule, and the list of
// legal choices. Everything here is per mesh axis: an axis acts on one factor, whatever the other
// axes do, except that axes on the same factor must divide it together.
#include "core/cost/layout.h"

#include "core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace shardlens {

namespace {

constexpr int kBehindAnother = -2; // shardedDim(): carried, but not as whole blocks

AxisState valueState(AxisLayout code) {
    if (code >= 0) return code;
    return code == kPartialReplicated ? kStatePartial : kStateReplicated;
}

AxisState gradientState(AxisLayout code) {
    if (code >= 0) return code;
    return code == kReplicatedPartial ? kStatePartial : kStateReplicated;
}

const Factor& factorAt(const FactorRule& rule, AxisChoice f) {
    return rule.factors[static_cast<std::size_t>(f)];
}

/// The layout on one axis of an operand whose dimensions carry `dims`.
AxisLayout operandAxis(AxisChoice f, const FactorRule& rule, std::size_t operand) {
    if (f < 0) return kReplicated;
    const int dim = shardedDim(rule.operands.at(operand), rule, f);
    if (dim >= 0) return static_cast<AxisLayout>(dim);
    // Every rank uses the whole operand for its part, so that gradients add up over the ranks. But
    // what is added once to partial results (a bias) sees the whole gradient.
    const bool once = factorAt(rule, f).kind == FactorKind::Reduction &&
                      std::ranges::find(rule.addedOnce, operand) != rule.addedOnce.end();
    return once ? kReplicated : kReplicatedPartial;
}

AxisLayout resultAxis(AxisChoice f, const FactorRule& rule, const std::vector<DimFactors>& dims) {
    if (f < 0) return kReplicated;
    const int dim = shardedDim(dims, rule, f);
    if (dim >= 0) return static_cast<AxisLayout>(dim);
    return factorAt(rule, f).kind == FactorKind::Reduction ? kPartialReplicated : kReplicated;
}

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

std::string factorNames(const FactorRule& rule) {
    std::vector<std::string_view> names;
    std::ranges::transform(rule.factors, std::back_inserter(names), &Factor::name);
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string axisNames(const Mesh& mesh) {
    std::vector<std::string_view> names;
    std::ranges::transform(mesh.axes, std::back_inserter(names), &MeshAxis::name);
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

AxisChoice factorFromName(std::string_view name, std::string_view text, const FactorRule& rule) {
    if (name == "state") return kStateSharded;
    const auto found = std::ranges::find(rule.factors, name, &Factor::name);
    if (found == rule.factors.end()) {
        throw PlanError(fmt::format("the op has no factor \"{}\"", name),
                        fmt::format("choice \"{}\"", text),
                        fmt::format("its factors are: {}", factorNames(rule)));
    }
    return static_cast<AxisChoice>(found - rule.factors.begin());
}

std::size_t axisFromName(std::string_view name, std::string_view text, const Mesh& mesh) {
    const int axis = mesh.axisIndex(name);
    if (axis < 0) {
        throw PlanError(fmt::format("the mesh has no axis \"{}\"", name),
                        fmt::format("choice \"{}\"", text),
                        fmt::format("its axes are: {}", axisNames(mesh)));
    }
    return static_cast<std::size_t>(axis);
}

/// The factor that lies before `f` in the dimension where `f` cannot be cut; -1 if none.
int factorBefore(const std::vector<std::vector<DimFactors>>& tensors, const FactorRule& rule,
                 int f) {
    for (const auto& dims : tensors) {
        if (shardedDim(dims, rule, f) != kBehindAnother) continue;
        for (const DimFactors& dim : dims) {
            if (std::ranges::find(dim, f) == dim.end()) continue;
            const auto first = std::ranges::find_if(dim, [&](int other) {
                return rule.factors[static_cast<std::size_t>(other)].size != 1;
            });
            if (first != dim.end() && *first != f) return *first;
        }
    }
    return -1;
}

bool carried(const std::vector<std::vector<DimFactors>>& tensors, int f) {
    return std::ranges::any_of(tensors, [f](const auto& dims) {
        return std::ranges::any_of(
            dims, [f](const DimFactors& dim) { return std::ranges::find(dim, f) != dim.end(); });
    });
}

/// Why no axis at all may act on the factor; empty if one may.
std::string factorObstacle(const FactorRule& rule, int f) {
    const Factor& factor = rule.factors[static_cast<std::size_t>(f)];
    if (factor.kind == FactorKind::Replicate)
        return fmt::format("{} must stay whole on every device", factor.name);
    if (factor.kind == FactorKind::Permutation)
        return fmt::format("halo exchange along {} is not supported yet", factor.name);
    if (!carried(rule.operands, f) && !carried(rule.results, f))
        return fmt::format("no tensor of the op carries {}", factor.name);
    int before = factorBefore(rule.operands, rule, f);
    if (before < 0) before = factorBefore(rule.results, rule, f);
    if (before < 0) return {};
    return fmt::format("{} lies behind {} in its dimension: a cut would not be contiguous",
                       factor.name, rule.factors[static_cast<std::size_t>(before)].name);
}

bool fits(std::int64_t size, std::int64_t shards, Divisibility divisibility) {
    return divisibility == Divisibility::Even ? size % shards == 0 : size >= shards;
}

std::string sizeObstacle(const Factor& factor, const MeshAxis& axis, Divisibility divisibility) {
    const std::string_view elements = factor.size == 1 ? "element" : "elements";
    if (divisibility == Divisibility::Even)
        return fmt::format("{} has {} {}: {}={} does not divide it", factor.name, factor.size,
                           elements, axis.name, axis.size);
    return fmt::format("{} has {} {}: fewer than {}={}", factor.name, factor.size, elements,
                       axis.name, axis.size);
}

/// True when the axes on each factor cut it together as `divisibility` asks.
bool dividesTogether(const Choice& choice, const FactorRule& rule, const Mesh& mesh,
                     Divisibility divisibility) {
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        const AxisChoice f = choice.axis[a];
        if (f < 0) continue;
        std::int64_t shards = 1;
        for (std::size_t b = 0; b < mesh.axes.size(); ++b)
            if (choice.axis[b] == f) shards *= mesh.axes[b].size;
        if (!fits(factorAt(rule, f).size, shards, divisibility)) return false;
    }
    return true;
}

} // namespace

SideLayout valueSide(const Layout& layout) {
    SideLayout side{};
    std::ranges::transform(layout.axis, side.begin(), valueState);
    return side;
}

SideLayout gradientSide(const Layout& layout) {
    SideLayout side{};
    std::ranges::transform(layout.axis, side.begin(), gradientState);
    return side;
}

std::string toString(const Layout& layout, const Mesh& mesh) {
    std::vector<std::string> parts;
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        const AxisLayout code = layout.axis[a];
        const std::string& name = mesh.axes[a].name;
        if (code >= 0) parts.push_back(fmt::format("d{}@{}", int{code}, name));
        if (code == kPartialReplicated) parts.push_back(fmt::format("partial@{}", name));
        if (code == kReplicatedPartial) parts.push_back(fmt::format("gradient-partial@{}", name));
    }
    return parts.empty() ? "replicated" : fmt::format("{}", fmt::join(parts, " "));
}

Shape localShape(const Shape& shape, const SideLayout& side, const Mesh& mesh) {
    Shape shards(shape.size(), 1);
    for (std::size_t a = 0; a < mesh.axes.size(); ++a)
        if (side[a] >= 0) shards.at(static_cast<std::size_t>(side[a])) *= mesh.axes[a].size;
    Shape local(shape.size());
    std::ranges::transform(shape, shards, local.begin(),
                           [](std::int64_t size, std::int64_t n) { return (size + n - 1) / n; });
    return local;
}

double shardCount(const SideLayout& side, const Mesh& mesh) {
    double count = 1;
    for (std::size_t a = 0; a < mesh.axes.size(); ++a)
        if (side[a] >= 0) count *= mesh.axes[a].size;
    return count;
}

std::string toString(const Choice& choice, const FactorRule& rule, const Mesh& mesh) {
    std::vector<std::string> parts;
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        const AxisChoice f = choice.axis[a];
        if (f == kIdle) continue;
        const std::string_view what =
            f == kStateSharded ? "state" : std::string_view(factorAt(rule, f).name);
        parts.push_back(fmt::format("{}@{}", what, mesh.axes[a].name));
    }
    return parts.empty() ? "replicated" : fmt::format("{}", fmt::join(parts, ","));
}

Choice choiceFromString(std::string_view text, const FactorRule& rule, const Mesh& mesh) {
    Choice choice;
    std::array<bool, kMaxMeshAxes> seen{};
    if (trimmed(text) == "replicated") return choice;
    for (std::string_view rest = text;;) {
        const std::size_t comma = rest.find(',');
        const std::string_view part = rest.substr(0, comma);
        const std::size_t at = part.find('@');
        if (at == std::string_view::npos) {
            throw PlanError(fmt::format("\"{}\" is not of the form factor@axis", trimmed(part)),
                            fmt::format("choice \"{}\"", text),
                            fmt::format("write \"replicated\", or pairs as in \"b@dp,n@tp\"; "
                                        "factors: {}; axes: {}",
                                        factorNames(rule), axisNames(mesh)));
        }
        const AxisChoice f = factorFromName(trimmed(part.substr(0, at)), text, rule);
        const std::size_t axis = axisFromName(trimmed(part.substr(at + 1)), text, mesh);
        if (std::exchange(seen[axis], true)) {
            throw PlanError(fmt::format("axis {} is given twice", mesh.axes[axis].name),
                            fmt::format("choice \"{}\"", text),
                            "give each mesh axis to one factor at most");
        }
        if (mesh.axes[axis].size > 1) choice.axis[axis] = f;
        if (comma == std::string_view::npos) return choice;
        rest.remove_prefix(comma + 1);
    }
}

Layout operandLayout(const Choice& choice, const FactorRule& rule, std::size_t operand,
                     const Mesh& mesh) {
    Layout layout;
    for (std::size_t a = 0; a < mesh.axes.size(); ++a)
        layout.axis[a] = operandAxis(choice.axis[a], rule, operand);
    return layout;
}

Layout resultLayout(const Choice& choice, const FactorRule& rule, std::size_t result,
                    const Mesh& mesh) {
    Layout layout;
    for (std::size_t a = 0; a < mesh.axes.size(); ++a)
        layout.axis[a] = resultAxis(choice.axis[a], rule, rule.results.at(result));
    return layout;
}

LegalChoices enumerateChoices(const FactorRule& rule, const Mesh& mesh, Divisibility divisibility,
                              bool parameterStates) {
    const int factors = static_cast<int>(rule.factors.size());
    std::vector<std::string> obstacles;
    obstacles.reserve(rule.factors.size());
    for (int f = 0; f < factors; ++f) obstacles.push_back(factorObstacle(rule, f));

    LegalChoices choices;
    choices.legal.emplace_back();
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        const MeshAxis& axis = mesh.axes[a];
        if (axis.size == 1) continue;
        std::vector<AxisChoice> options{kIdle};
        for (int f = 0; f < factors; ++f) {
            const Factor& factor = rule.factors[static_cast<std::size_t>(f)];
            std::string reason = obstacles[static_cast<std::size_t>(f)];
            if (reason.empty() && !fits(factor.size, axis.size, divisibility))
                reason = sizeObstacle(factor, axis, divisibility);
            if (reason.empty()) {
                options.push_back(static_cast<AxisChoice>(f));
            } else {
                Choice choice;
                choice.axis[a] = static_cast<AxisChoice>(f);
                choices.illegal.push_back({choice, std::move(reason)});
            }
        }
        if (parameterStates) options.push_back(kStateSharded);

        std::vector<Choice> extended;
        for (Choice choice : choices.legal) {
            for (AxisChoice option : options) {
                choice.axis[a] = option;
                if (dividesTogether(choice, rule, mesh, divisibility)) extended.push_back(choice);
            }
        }
        choices.legal = std::move(extended);
    }
    return choices;
}

} // namespace shardlens
