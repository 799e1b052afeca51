// SPDX-License-Identifier: Apache-2.0
// The forward op of a Gradient, put together from its attributes and operands.
#include "core/model/gradient.h"

#include "core/model/catalogue_rows.h"

namespace shardlens::gradient {

namespace {

constexpr std::int64_t kMostPorts = 64;

void put(std::vector<TensorSpec>& specs, std::int64_t port, const TensorSpec& spec) {
    if (static_cast<std::size_t>(port) >= specs.size())
        specs.resize(static_cast<std::size_t>(port) + 1);
    specs[static_cast<std::size_t>(port)] = spec;
}

} // namespace

Forward forwardOf(const OpView& view) {
    const Attributes& a = view.op.attributes;
    const auto kind = opKindFromName(a.text("of"));
    catalogue::require(kind && *kind != OpKind::Gradient, view, "the forward op is not known");
    const auto roles = a.integers("roles"), wanted = a.integers("wanted");
    catalogue::require(roles.size() == view.inputs.size(), view,
                       "operands and roles differ in number");
    Forward forward;
    forward.op = {view.op.name, *kind, view.op.type, a, {}, {}};
    for (std::size_t i = 0; i < roles.size(); ++i) {
        const std::int64_t role = roles[i];
        if (!view.hasInput(i) || role >= kRowStatistic) continue;
        const bool result = role >= kForwardResult;
        const std::int64_t port = role % kForwardResult;
        catalogue::require(role >= 0 && port < kMostPorts, view, "an operand has an unknown role");
        put(result ? forward.outputs : forward.inputs, port, view.inputs[i]);
    }
    for (std::size_t r = 0; r < wanted.size() && r < view.outputs.size(); ++r) {
        catalogue::require(wanted[r] >= 0 && wanted[r] < kMostPorts, view,
                           "a result is the gradient of no operand");
        const auto port = static_cast<std::size_t>(wanted[r]);
        if (port >= forward.inputs.size() || forward.inputs[port].dtype == DType::Unknown)
            put(forward.inputs, wanted[r], view.outputs[r]);
    }
    forward.op.inputs.assign(forward.inputs.size(), kNoTensor);
    return forward;
}

Attributes attributesFor(OpKind kind, Attributes forward, std::vector<std::int64_t> roles,
                         std::vector<std::int64_t> wanted) {
    forward.set("of", std::string(nameOf(kind)));
    forward.set("roles", std::move(roles));
    forward.set("wanted", std::move(wanted));
    return forward;
}

} // namespace shardlens::gradient
