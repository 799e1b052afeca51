// SPDX-License-Identifier: Apache-2.0
// Products and convolutions. StableHLO names the role of every dimension; products become einsums
// with a letter a role, convolutions are brought into the order [batch, channels, space…].
#include "core/import/mlir_call.h"
#include "core/import/mlir_scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace shardlens::mlir {

namespace {

using Ints = Call::Ints;

class Letters {
public:
    explicit Letters(Call& call) : m_call(call) {}
    char next() {
        constexpr std::string_view kAll = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        m_call.require(m_used < kAll.size(), "a product has too many dimensions");
        return kAll[m_used++];
    }

private:
    Call& m_call;
    std::size_t m_used = 0;
};

struct Roles {
    Ints lhsBatch, rhsBatch, lhsContracting, rhsContracting;
};

/// result = batch dims, free dims of the left, free dims of the right
void einsum(Call& call, const Roles& roles) {
    std::string lhs(call.shape(0).size(), ' '), rhs(call.shape(1).size(), ' '), result;
    Letters letters(call);
    const auto pair = [&](const Ints& left, const Ints& right, bool kept) {
        call.require(left.size() == right.size(), "the dimensions of a product do not pair up");
        for (std::size_t i = 0; i < left.size(); ++i) {
            char& l = lhs[static_cast<std::size_t>(call.axis(left[i], call.rank(0)))];
            char& r = rhs[static_cast<std::size_t>(call.axis(right[i], call.rank(1)))];
            call.require(l == ' ' && r == ' ', "a dimension of a product has two roles");
            l = r = letters.next();
            if (kept) result.push_back(l);
        }
    };
    pair(roles.lhsBatch, roles.rhsBatch, true);
    pair(roles.lhsContracting, roles.rhsContracting, false);
    for (std::string* side : {&lhs, &rhs})
        for (char& c : *side)
            if (c == ' ') result.push_back(c = letters.next());
    call.result(OpKind::Einsum, {{"equation", lhs + "," + rhs + "->" + result}},
                {call.input(0), call.input(1)});
}

void dot(Call& call, std::string_view) {
    call.require(call.rank(0) >= 1 && call.rank(1) >= 1, "a product needs operands of rank 1 or 2");
    einsum(call, {{}, {}, {call.rank(0) - 1}, {0}});
}

/// "batching_dims = [0] x [0], contracting_dims = [2] x [1]", or one attribute with four fields.
void dotGeneral(Call& call, std::string_view) {
    const Operation& op = call.op();
    Roles roles;
    if (const std::string_view numbers = op.attribute("dot_dimension_numbers"); !numbers.empty()) {
        const auto field = [&](std::string_view name) {
            return readIntegers(fieldOf(numbers, name)).value_or(Ints{});
        };
        roles = {field("lhs_batching_dimensions"), field("rhs_batching_dimensions"),
                 field("lhs_contracting_dimensions"), field("rhs_contracting_dimensions")};
    } else {
        const auto sides = [&](std::string_view name, Ints& left, Ints& right) {
            const std::string_view text = op.attribute(name);
            if (text.empty()) return;
            const auto lists = splitLists(text);
            call.require(lists.size() == 2, "the dimensions of a product do not pair up");
            left = readIntegers(lists[0]).value_or(Ints{});
            right = readIntegers(lists[1]).value_or(Ints{});
        };
        sides("batching_dims", roles.lhsBatch, roles.rhsBatch);
        sides("contracting_dims", roles.lhsContracting, roles.rhsContracting);
    }
    einsum(call, roles);
}

// --- convolution --------------------------------------------------------------------------------

/// Where batch (or output) and feature (or input) dimensions and those of space are in a tensor.
struct Order {
    std::int64_t first = -1, second = -1;
    std::map<std::int64_t, std::int64_t> space; ///< number of the spatial dimension -> dimension

    /// Dimensions in the order first, second, space.
    Ints permutation() const {
        Ints result{first, second};
        for (const auto& [number, dim] : space) result.push_back(dim);
        return result;
    }
};

/// "[b, 0, 1, f]" with `first` and `second` as letters.
Order orderOf(const Call& call, std::string_view list, char first, char second) {
    Order order;
    Scanner scan(list, "dim_numbers");
    scan.expect("[", "dim_numbers");
    for (std::int64_t dim = 0; scan.peek() != ']'; ++dim) {
        if (const std::string_view name = scan.name(); !name.empty()) {
            (name.front() == first ? order.first : order.second) = dim;
            call.require(name.size() == 1 && (name.front() == first || name.front() == second),
                         "dim_numbers are not the usual ones");
        } else {
            const std::string_view digits = scan.number();
            std::int64_t number = -1;
            std::from_chars(digits.data(), digits.data() + digits.size(), number);
            call.require(number >= 0 && order.space.emplace(number, dim).second,
                         "dim_numbers are not the usual ones");
        }
        if (!scan.accept(",")) break;
    }
    call.require(order.first >= 0 && order.second >= 0 &&
                     (order.space.empty() || order.space.rbegin()->first ==
                                                 static_cast<std::int64_t>(order.space.size()) - 1),
                 "dim_numbers are not the usual ones");
    return order;
}

struct Orders {
    Order image, kernel, result;
};

/// From "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]" or "#stablehlo.conv<raw or that>".
Orders ordersOf(const Call& call) {
    std::string_view text = call.op().attribute("dim_numbers", "dimension_numbers");
    const auto open = text.find('[');
    call.require(open != std::string_view::npos, "dim_numbers are missing");
    text = text.substr(open);
    if (text.ends_with(">")) text.remove_suffix(1);
    const auto lists = splitLists(text);
    call.require(lists.size() == 3, "dim_numbers are not the usual ones");
    return {orderOf(call, lists[0], 'b', 'f'), orderOf(call, lists[1], 'o', 'i'),
            orderOf(call, lists[2], 'b', 'f')};
}

/// A setting of the window: attribute `name`, or field `field` of "window = {…}".
Ints windowOf(const Call& call, std::string_view name, std::string_view field, std::size_t count,
              std::int64_t fallback) {
    std::string_view text = call.op().attribute(name);
    if (text.empty()) text = fieldOf(call.op().attribute("window"), field);
    if (text.empty()) return Ints(count, fallback);
    Ints values = readIntegers(text).value_or(Ints{});
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    call.require(values.size() == count &&
                     std::ranges::all_of(values, [](auto v) { return v >= -kMost && v <= kMost; }),
                 "the window is not the usual one");
    return values;
}

bool all(const Ints& values, std::int64_t wanted) {
    return std::ranges::all_of(values, [wanted](std::int64_t v) { return v == wanted; });
}

Ints inverse(const Ints& permutation) {
    Ints result(permutation.size());
    for (std::size_t i = 0; i < permutation.size(); ++i)
        result[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
    return result;
}

/// [g b, c, …] -> [b, g c, …]: a group of the batch meets a group of the kernel's outputs, as a
/// group of channels does.
TensorId batchGroupsAsChannels(Call& call, TensorId image, std::int64_t groups) {
    Shape shape = call.shapeOf(image);
    call.require(shape[0] % groups == 0, "the batch is not a multiple of its groups");
    shape[0] /= groups;
    Shape apart = shape, together = shape;
    apart.insert(apart.begin(), groups);
    together[1] *= groups;
    Ints order{1, 0};
    for (std::size_t d = 2; d < apart.size(); ++d) order.push_back(static_cast<std::int64_t>(d));
    return call.reshaped(call.transposed(call.reshaped(image, apart), order), together);
}

void convolution(Call& call, std::string_view) {
    const Orders orders = ordersOf(call);
    const std::size_t space = orders.image.space.size();
    call.require(call.shape(0).size() == space + 2 && call.shape(1).size() == space + 2 &&
                     orders.kernel.space.size() == space && orders.result.space.size() == space,
                 "dim_numbers do not fit the operands");
    const Ints padding = windowOf(call, "padding", "pad", 2 * space, 0);
    Ints pads(2 * space);
    for (std::size_t i = 0; i < space; ++i) { // [[low, high], …] -> lows, highs
        pads[i] = padding[2 * i];
        pads[space + i] = padding[2 * i + 1];
    }
    call.require(all(windowOf(call, "lhs_dilation", "lhs_dilate", space, 1), 1) &&
                     all(windowOf(call, "window_reversal", "reverse", space, 0), 0) &&
                     std::ranges::all_of(pads, [](std::int64_t p) { return p >= 0; }),
                 "a transposed convolution");
    const auto count = [&](std::string_view name) {
        return call.op().hasAttribute(name) ? call.integer(name) : 1;
    };
    const std::int64_t batches = count("batch_group_count"), groups = count("feature_group_count");
    call.require(batches >= 1 && (batches == 1 || groups == 1), "groups of two kinds");
    TensorId image = call.transposed(call.input(0), orders.image.permutation());
    if (batches > 1) image = batchGroupsAsChannels(call, image, batches);
    const TensorId kernel = call.transposed(call.input(1), orders.kernel.permutation());
    Attributes attributes{{"strides", windowOf(call, "window_strides", "stride", space, 1)},
                          {"pads", pads},
                          {"dilations", windowOf(call, "rhs_dilation", "rhs_dilate", space, 1)},
                          {"group", std::max(batches, groups)}};
    const Ints back = inverse(orders.result.permutation());
    if (std::ranges::is_sorted(back))
        return call.result(OpKind::Conv, std::move(attributes), {image, kernel});
    const TensorId result = call.step(OpKind::Conv, std::move(attributes), {image, kernel});
    call.result(OpKind::Transpose, {{"perm", back}}, {result});
}

} // namespace

std::vector<Rule> contractionRules() {
    return {
        {"dot", dot},
        {"dot_general", dotGeneral},
        {"convolution", convolution},
    };
}

} // namespace shardlens::mlir
