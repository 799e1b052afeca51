// SPDX-License-Identifier: Apache-2.0
// Each tensor of the old graph is kept as a tensor of the new one and the way its dimensions are
// grouped to give the old shape: [8, 24, 1536] with groups (0 1)(2) stands for [192, 1536]. A
// reshape that only merges changes the groups and adds no op. Ops without a rule here get their
// operands in the old shape, by a reshape that is made when first needed.
#include "core/model/merged_dims.h"

#include "core/model/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace shardlens {

namespace {

using Group = std::vector<std::size_t>; ///< consecutive dimensions, major first; may be empty
using Groups = std::vector<Group>;      ///< one a dimension of the old shape

/// What stands for a tensor of the old graph.
struct Form {
    TensorId tensor = kNoTensor; ///< of the new graph
    Groups groups;
    TensorId merged = kNoTensor; ///< the tensor in its old shape, once made
};

Groups singles(std::size_t rank) {
    Groups groups(rank);
    for (std::size_t d = 0; d < rank; ++d) groups[d] = {d};
    return groups;
}

/// Groups of sizes as they follow each other: {2, 1} -> (0 1)(2).
Groups consecutive(const std::vector<std::size_t>& sizes) {
    Groups groups;
    std::size_t next = 0;
    for (const std::size_t size : sizes) {
        groups.emplace_back(size);
        std::iota(groups.back().begin(), groups.back().end(), next);
        next += size;
    }
    return groups;
}

bool isPlain(const Groups& groups) {
    return std::ranges::all_of(groups, [](const Group& group) { return group.size() == 1; });
}

/// How `from` becomes `to`: where a stretch of dimensions ends in one, it stays apart and is only
/// grouped; where it does not, the new sizes are taken.
struct Regrouping {
    Shape shape; ///< of the tensor that is kept
    Groups groups;
};

Regrouping regroup(const Shape& from, const Shape& to) {
    Regrouping result;
    std::vector<std::size_t> sizes;
    std::size_t i = 0, j = 0;
    while (j < to.size()) {
        if (to[j] == 1 && (i == from.size() || from[i] != 1)) {
            sizes.push_back(0); // a dimension of size 1 that the kept tensor does without
            ++j;
            continue;
        }
        const std::size_t firstIn = i, firstOut = j;
        std::int64_t in = i < from.size() ? from[i++] : 1, out = to[j++];
        while (in != out) {
            if (in < out && i < from.size())
                in *= from[i++];
            else if (j < to.size())
                out *= to[j++];
            else
                return {to, singles(to.size())};
        }
        if (j == to.size()) // trailing dimensions of size 1
            while (i < from.size()) ++i;
        if (j - firstOut == 1) {
            // A dimension of size 1 beside others is not worth keeping.
            const std::size_t before = result.shape.size();
            for (std::size_t d = firstIn; d < i; ++d)
                if (from[d] != 1) result.shape.push_back(from[d]);
            if (result.shape.size() == before) result.shape.push_back(1);
            sizes.push_back(result.shape.size() - before);
        } else {
            result.shape.insert(result.shape.end(),
                                to.begin() + static_cast<std::ptrdiff_t>(firstOut),
                                to.begin() + static_cast<std::ptrdiff_t>(j));
            sizes.insert(sizes.end(), j - firstOut, 1);
        }
    }
    result.groups = consecutive(sizes);
    if (elementsOf(result.shape) != elementsOf(to)) return {to, singles(to.size())};
    return result;
}

class Pass {
public:
    explicit Pass(const Graph& source) : m_old(source), m_forms(source.tensors().size()) {}

    Graph run() {
        for (OpId id = 0; id < m_old.ops().size(); ++id)
            if (!apart(m_old.op(id))) whole(m_old.op(id));
        for (const TensorId output : m_old.outputs()) m_new.markOutput(merged(output));
        m_new.name = m_old.name;
        m_new.format = m_old.format;
        m_new.warnings = m_old.warnings;
        m_new.bindings = m_old.bindings;
        m_new.facts = m_old.facts;
        m_new.backwardIncluded = m_old.backwardIncluded;
        movePartition();
        return std::move(m_new);
    }

private:
    Form& form(TensorId old) { return m_forms[old]; }
    const Shape& oldShape(TensorId old) const { return m_old.tensor(old).spec.shape; }
    Shape newShape(TensorId now) const { return m_new.tensor(now).spec.shape; }

    TensorId reshape(TensorId now, const Shape& shape, std::string name,
                     std::string resultName = {}) {
        if (newShape(now) == shape) return now;
        Op op;
        op.name = std::move(name);
        op.kind = OpKind::Reshape;
        op.type = "view";
        op.attributes = {{"shape", shape}};
        op.inputs = {now};
        const DType dtype = m_new.tensor(now).spec.dtype;
        const OpId id = m_new.addOp(std::move(op), {{dtype, shape}}, {std::move(resultName)});
        return m_new.op(id).outputs[0];
    }

    /// A tensor in its old shape.
    TensorId merged(TensorId old) {
        if (old == kNoTensor) return kNoTensor;
        Form& f = form(old);
        if (f.merged == kNoTensor)
            f.merged = reshape(f.tensor, oldShape(old), m_old.tensor(old).name + ".view");
        return f.merged;
    }

    std::vector<std::string> resultNames(const Op& op) const {
        std::vector<std::string> names;
        for (const TensorId out : op.outputs) names.push_back(m_old.tensor(out).name);
        return names;
    }

    /// The op as it was.
    void whole(const Op& op) {
        Op copy = op;
        for (TensorId& input : copy.inputs) input = merged(input);
        std::vector<TensorSpec> specs;
        for (const TensorId out : op.outputs) specs.push_back(m_old.tensor(out).spec);
        std::vector<Groups> groups;
        for (const TensorSpec& spec : specs) groups.push_back(singles(spec.shape.size()));
        add(op, std::move(copy), std::move(specs), groups);
    }

    /// Adds `copy` in the place of `op` and notes what its results are.
    void add(const Op& op, Op copy, std::vector<TensorSpec> specs,
             const std::vector<Groups>& groups) {
        const OpId id = m_new.addOp(std::move(copy), std::move(specs), resultNames(op));
        for (std::size_t r = 0; r < op.outputs.size(); ++r) {
            const TensorId now = m_new.op(id).outputs[r];
            form(op.outputs[r]) = {now, groups[r], isPlain(groups[r]) ? now : kNoTensor};
            if (const auto& value = m_old.tensor(op.outputs[r]).value)
                m_new.setKnownValue(now, *value);
            if (const auto& reals = m_old.tensor(op.outputs[r]).reals)
                m_new.setKnownReals(now, *reals);
        }
    }

    /// Sizes of the kept dimensions of each group.
    std::vector<Shape> partsOf(const Form& f) const {
        const Shape shape = newShape(f.tensor);
        std::vector<Shape> parts;
        for (const Group& group : f.groups) {
            parts.emplace_back();
            for (const std::size_t d : group) parts.back().push_back(shape[d]);
        }
        return parts;
    }

    static Shape joined(const std::vector<Shape>& parts) {
        Shape shape;
        for (const Shape& part : parts) shape.insert(shape.end(), part.begin(), part.end());
        return shape;
    }

    static Groups groupsOf(const std::vector<Shape>& parts) {
        std::vector<std::size_t> sizes;
        for (const Shape& part : parts) sizes.push_back(part.size());
        return consecutive(sizes);
    }

    bool isMerged(TensorId old) {
        return old != kNoTensor && !isPlain(form(old).groups) && !isUnsqueezed(old);
    }

    /// Dimensions of size 1 that are only missing: nothing is gained by keeping them away.
    bool isUnsqueezed(TensorId old) {
        return std::ranges::any_of(form(old).groups, [](const Group& g) { return g.empty(); });
    }

    bool anyMerged(const Op& op) {
        return std::ranges::any_of(op.inputs, [&](TensorId input) { return isMerged(input); });
    }

    /// Puts an op in with its dimensions apart; false if it has to stay as it is.
    bool apart(const Op& op) {
        if (op.kind == OpKind::Reshape) return regrouped(op);
        if (!anyMerged(op)) return false;
        switch (op.kind) {
        case OpKind::Transpose:
            return transposed(op);
        case OpKind::Elementwise:
        case OpKind::Dropout:
            return elementwise(op);
        case OpKind::Softmax:
        case OpKind::Norm:
        case OpKind::Reduce:
            return alongAxes(op);
        case OpKind::MatMul:
            return op.inputs.size() > 1 && oldShape(op.inputs[1]).size() == 2 ? product(op)
                                                                              : batchedProduct(op);
        case OpKind::Gather:
            return gathered(op);
        case OpKind::GatherElements:
            return gatheredElements(op);
        case OpKind::Split:
        case OpKind::Slice:
            return cut(op);
        default:
            return false;
        }
    }

    // --- one rule an op -------------------------------------------------------------------------

    bool regrouped(const Op& op) {
        if (op.inputs.size() != 1 || op.inputs[0] == kNoTensor) return false;
        const TensorId old = op.inputs[0], out = op.outputs[0];
        const Shape kept = newShape(form(old).tensor), &target = oldShape(out);
        if (elementsOf(target) == 0) return false;
        Regrouping next = regroup(kept, target);
        TensorId tensor = form(old).tensor;
        if (next.shape != kept)
            tensor = reshape(tensor, next.shape, op.name, m_old.tensor(out).name);
        const bool plain = isPlain(next.groups) && next.shape == target;
        form(out) = {tensor, std::move(next.groups), plain ? tensor : kNoTensor};
        return true;
    }

    bool transposed(const Op& op) {
        const Form from = form(op.inputs[0]);
        const std::vector<Shape> parts = partsOf(from);
        std::vector<std::int64_t> perm;
        std::vector<Shape> moved;
        for (const std::int64_t p : op.attributes.integers("perm")) {
            const auto at = static_cast<std::size_t>(p);
            for (const std::size_t d : from.groups[at])
                perm.push_back(static_cast<std::int64_t>(d));
            moved.push_back(parts[at]);
        }
        Op copy = op;
        copy.inputs = {from.tensor};
        copy.attributes.set("perm", perm);
        add(op, std::move(copy), {{m_old.tensor(op.outputs[0]).spec.dtype, joined(moved)}},
            {groupsOf(moved)});
        return true;
    }

    /// The operand that says how the result's dimensions come apart.
    std::optional<std::vector<Shape>> resultParts(const Op& op) {
        const Shape& result = oldShape(op.outputs[0]);
        std::optional<std::vector<Shape>> best;
        for (const TensorId input : op.inputs) {
            if (!isMerged(input) || oldShape(input) != result) continue;
            std::vector<Shape> parts = partsOf(form(input));
            if (!best || joined(parts).size() > joined(*best).size()) best = std::move(parts);
        }
        return best;
    }

    /// An operand, aligned at the right to a result with these parts.
    TensorId aligned(TensorId old, const std::vector<Shape>& parts) {
        const Shape& shape = oldShape(old);
        std::vector<Shape> own;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const Shape& part = parts[parts.size() - shape.size() + d];
            own.push_back(shape[d] == 1 ? Shape(part.size(), 1) : part);
        }
        return reshape(form(old).tensor, joined(own), m_old.tensor(old).name + ".view");
    }

    bool elementwise(const Op& op) {
        const auto parts = resultParts(op);
        if (!parts) return false;
        Op copy = op;
        for (TensorId& input : copy.inputs)
            if (input != kNoTensor) input = aligned(input, *parts);
        std::vector<TensorSpec> specs;
        for (const TensorId out : op.outputs)
            specs.push_back({m_old.tensor(out).spec.dtype, joined(*parts)});
        add(op, std::move(copy), std::move(specs),
            std::vector<Groups>(op.outputs.size(), groupsOf(*parts)));
        return true;
    }

    bool alongAxes(const Op& op) {
        const Form from = form(op.inputs[0]);
        if (!isMerged(op.inputs[0]) || op.outputs.size() != 1) return false;
        if (op.kind == OpKind::Norm) {
            const std::string mode = op.attributes.text("mode", "layer");
            if (mode != "layer" && mode != "rms") return false;
        }
        std::vector<std::int64_t> axes;
        std::vector<bool> reduced(from.groups.size(), false);
        for (const std::int64_t axis : op.attributes.integers("axes")) {
            const auto at = static_cast<std::size_t>(axis);
            reduced[at] = true;
            if (op.kind == OpKind::Norm && from.groups[at].size() != 1) return false;
            for (const std::size_t d : from.groups[at])
                axes.push_back(static_cast<std::int64_t>(d));
        }
        std::vector<Shape> parts = partsOf(from), result;
        const bool keep = op.attributes.integer("keepdims", 1) != 0;
        for (std::size_t d = 0; d < parts.size(); ++d) {
            if (op.kind != OpKind::Reduce || !reduced[d])
                result.push_back(parts[d]);
            else if (keep)
                result.emplace_back(parts[d].size(), 1);
        }
        Op copy = op;
        copy.inputs[0] = from.tensor;
        for (std::size_t i = 1; i < op.inputs.size(); ++i) copy.inputs[i] = merged(op.inputs[i]);
        copy.attributes.set("axes", axes);
        add(op, std::move(copy), {{m_old.tensor(op.outputs[0]).spec.dtype, joined(result)}},
            {groupsOf(result)});
        return true;
    }

    /// A[.., k] B[k, n]: the rows may have any number of dimensions.
    bool product(const Op& op) {
        const Form rows = form(op.inputs[0]);
        const bool transposed = op.attributes.integer("transA", 0) != 0;
        const bool bias = op.inputs.size() > 2 && op.inputs[2] != kNoTensor;
        if (transposed || !isMerged(op.inputs[0])) return false;
        if (bias && oldShape(op.inputs[2]).size() > 1) return false;
        std::vector<Shape> parts = partsOf(rows);
        parts.back() = {oldShape(op.inputs[0]).back()};
        Op copy = op;
        copy.inputs[0] =
            reshape(rows.tensor, joined(parts), m_old.tensor(op.inputs[0]).name + ".view");
        parts.back() = {oldShape(op.outputs[0]).back()};
        for (std::size_t i = 1; i < op.inputs.size(); ++i) copy.inputs[i] = merged(op.inputs[i]);
        add(op, std::move(copy), {{m_old.tensor(op.outputs[0]).spec.dtype, joined(parts)}},
            {groupsOf(parts)});
        return true;
    }

    /// A[.., m, k] B[.., k, n] with equal batch dimensions.
    bool batchedProduct(const Op& op) {
        const Shape &a = oldShape(op.inputs[0]), &b = oldShape(op.inputs[1]),
                    &c = oldShape(op.outputs[0]);
        if (a.size() != b.size() || a.size() < 3 || c.size() != a.size()) return false;
        if (op.inputs.size() > 2 && op.inputs[2] != kNoTensor) return false;
        const std::size_t batch = a.size() - 2;
        if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(batch), b.begin()))
            return false;
        std::vector<Shape> parts =
            partsOf(form(isMerged(op.inputs[0]) ? op.inputs[0] : op.inputs[1]));
        Op copy = op;
        for (std::size_t i = 0; i < 2; ++i) {
            const Shape& own = oldShape(op.inputs[i]);
            parts[batch] = {own[batch]};
            parts[batch + 1] = {own[batch + 1]};
            copy.inputs[i] = aligned(op.inputs[i], parts);
        }
        parts[batch] = {c[batch]};
        parts[batch + 1] = {c[batch + 1]};
        add(op, std::move(copy), {{m_old.tensor(op.outputs[0]).spec.dtype, joined(parts)}},
            {groupsOf(parts)});
        return true;
    }

    bool gathered(const Op& op) {
        if (!isMerged(op.inputs[1])) return false;
        const Shape& table = oldShape(op.inputs[0]);
        const auto axis = static_cast<std::size_t>(op.attributes.integer("axis", 0));
        std::vector<Shape> parts;
        for (std::size_t d = 0; d < table.size(); ++d) {
            if (d != axis) {
                parts.push_back({table[d]});
                continue;
            }
            for (const Shape& part : partsOf(form(op.inputs[1]))) parts.push_back(part);
        }
        Op copy = op;
        copy.inputs = {merged(op.inputs[0]), form(op.inputs[1]).tensor};
        add(op, std::move(copy), {{m_old.tensor(op.outputs[0]).spec.dtype, joined(parts)}},
            {groupsOf(parts)});
        return true;
    }

    /// Data and indices of equal sizes but along the axis.
    bool gatheredElements(const Op& op) {
        const auto axis = static_cast<std::size_t>(op.attributes.integer("axis", 0));
        Shape data = oldShape(op.inputs[0]), indices = oldShape(op.inputs[1]);
        const std::array<std::int64_t, 2> along{data.at(axis), indices.at(axis)};
        data[axis] = indices[axis] = 1;
        if (data != indices) return false;
        std::vector<Shape> parts =
            partsOf(form(isMerged(op.inputs[0]) ? op.inputs[0] : op.inputs[1]));
        Op copy = op;
        for (std::size_t i = 0; i < 2; ++i) {
            parts[axis] = {along[i]};
            copy.inputs[i] = aligned(op.inputs[i], parts);
        }
        Groups groups = groupsOf(parts);
        copy.attributes.set("axis", static_cast<std::int64_t>(groups[axis][0]));
        add(op, std::move(copy), {{m_old.tensor(op.outputs[0]).spec.dtype, joined(parts)}},
            {std::move(groups)});
        return true;
    }

    /// Split and Slice along dimensions that are whole.
    bool cut(const Op& op) {
        const Form from = form(op.inputs[0]);
        std::vector<std::int64_t> axes = op.attributes.integers("axes");
        if (op.kind == OpKind::Split) axes = {op.attributes.integer("axis", 0)};
        std::vector<std::int64_t> moved;
        for (const std::int64_t axis : axes) {
            const Group& group = from.groups[static_cast<std::size_t>(axis)];
            if (group.size() != 1) return false;
            moved.push_back(static_cast<std::int64_t>(group[0]));
        }
        std::vector<TensorSpec> specs;
        std::vector<Groups> groups;
        for (const TensorId out : op.outputs) {
            std::vector<Shape> parts = partsOf(from);
            for (const std::int64_t axis : axes)
                parts[static_cast<std::size_t>(axis)] = {
                    oldShape(out)[static_cast<std::size_t>(axis)]};
            specs.push_back({m_old.tensor(out).spec.dtype, joined(parts)});
            groups.push_back(groupsOf(parts));
        }
        Op copy = op;
        copy.inputs = {from.tensor};
        if (op.kind == OpKind::Split)
            copy.attributes.set("axis", moved[0]);
        else
            copy.attributes.set("axes", moved);
        add(op, std::move(copy), std::move(specs), groups);
        return true;
    }

    void movePartition() {
        if (!m_old.partition) return;
        m_new.partition = m_old.partition;
        m_new.partition->shardings.clear();
        for (const auto& [old, sharding] : m_old.partition->shardings)
            if (m_forms[old].merged != kNoTensor)
                m_new.partition->shardings.emplace(m_forms[old].merged, sharding);
    }

    const Graph& m_old;
    Graph m_new;
    std::vector<Form> m_forms; ///< by TensorId of the old graph
};

} // namespace

Graph withMergedDimsApart(const Graph& graph) {
    return Pass(graph).run();
}

} // namespace shardlens
