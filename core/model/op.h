// SPDX-License-Identifier: Apache-2.0
// An op of a graph: kind, attributes, operands and results. Importers translate every format's
// own op names into these kinds and normalise attributes as the comments of OpKind say; all
// meaning (shape, factor rule, FLOPs) then comes from the one table in catalogue.h.
#pragma once

#include "core/model/tensor.h"

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardlens {

// Attribute names are given in brackets. Axes are normalised to be non-negative.
enum class OpKind : std::uint8_t {
    Input,     ///< data fed each step; no operands
    Parameter, ///< trained tensor; no operands
    Constant,  ///< fixed tensor, not trained; no operands
    MatMul,    ///< A[..,m,k] B[..,k,n] (+bias[n]) -> [..,m,n]; [transA, transB: 0/1]; batch dims
               ///< broadcast
    Einsum,    ///< [equation: "bij,bjk->bik", no ellipsis]
    Attention, ///< q[b,s,H,d] k[b,t,K,d] v[b,t,K,e] (+mask) -> [b,s,H,e]; [causal: 0/1]; H =
               ///< K*groups, K major; a mask is added to the scores, or a bool one hides what is 0;
               ///< key j is seen by query i where j <= i + past (0); scale (1/sqrt(d)); softcap:
               ///< scores c tanh(score / c), before the mask (0: as they are); window: only so many
               ///< keys up to the query's own are seen (0: all)
    Rotary,    ///< x[b,s,H,d] -> same, tables are computed in place; [base (10000), width: how much
               ///< of d is turned (all), interleaved: pairs are neighbours, not halves; past]
    Conv, ///< x[b,C,spatial..] w[O,C/g,k..] (+bias[O]); [strides, pads(begin..,end..), dilations,
          ///< group]
    ConvTranspose, ///< x[b,C,spatial..] w[C,O/g,k..] (+bias[O]); [strides, pads, dilations, group,
                   ///< output_padding]
    Pool, ///< x[b,C,spatial..]; [mode: "max"|"average"|"lp", kernel, strides, pads, dilations,
          ///< ceil_mode, count_include_pad (average), p (lp: 2); indices: 0/1: a second
          ///< result has the place of each maximum in the whole of x]
    GlobalPool,  ///< x[b,C,spatial..] -> [b,C,1..]; [mode, p]
    Elementwise, ///< any arity with multidirectional broadcasting; [function: "add", "gelu",
                 ///< "where", "cast", …; to: dtype name, for cast; the functions and the attributes
                 ///< they read are the tables of core/execute/scalar_*.cpp]
    Dropout,     ///< x -> x (and mask); [ratio, seed, training (1): else nothing is dropped]
    Softmax,     ///< [axes: dims normalised together; function: "softmax"|"logsoftmax"|"hardmax"]
    Norm,        ///< x, scale?, bias?, (mean?, variance?) -> x; [mode:
                 ///< "layer"|"rms"|"batch"|"group"|"instance"|"lp"; axes (layer, rms, lp); groups;
                 ///< epsilon (1e-5); p (lp: 2); batch: training (0), momentum of the running ones;
    ///< statistics: 0/1]; further results: layer mean and 1/deviation, rms 1/deviation, of
    ///< each row; batch in training the running mean and variance
    Gather,    ///< table, indices -> table with dim `axis` replaced by the indices' dims; [axis]
    Transpose, ///< [perm]
    Reshape,   ///< also Flatten, Squeeze, Unsqueeze; [shape: the full result shape]
    Expand,    ///< broadcast to [shape]
    Concat,    ///< [axis]
    Split,     ///< [axis, sizes]
    Slice,     ///< [starts, ends, axes, steps], all as long as axes
    Pad,       ///< x, value? -> x; [pads: begin.., end..; mode: "constant" (value)|"edge"|
               ///< "reflect"|"wrap"]
    Reduce,    ///< [function:
            ///< "sum"|"mean"|"max"|"min"|"prod"|"l1"|"l2"|"sumsquare"|"logsumexp"|"logsum", axes,
            ///< keepdims]
    ArgReduce,      ///< [function: "argmax"|"argmin", axis, keepdims, select_last]
    TopK,           ///< x -> values, indices; [axis, k, largest (1)]
    CumSum,         ///< running sums; [axis, function: "sum"|"prod", exclusive, reverse: 0/1]
    Tile,           ///< [repeats]
    GatherElements, ///< data, indices of the same rank -> like indices; [axis]
    GatherND, ///< data, indices[B.., I.., n] -> [B.., I.., rest of data]; [batch_dims: length of B]
    Scatter,  ///< data, indices, updates -> data; [mode: "elements" (axis) | "nd" | "cache" (axis;
              ///< the indices are where each batch entry begins, absent: 0; circular: 0/1);
              ///< reduction: "none"|"add"|"mul"|"max"|"min"]
    OneHot, ///< indices, values[off, on] -> indices' dims with `depth` inserted at [axis]; [depth]
    Generate,        ///< no operands, each element made from where it lies; [shape, to: dtype name;
                     ///< function: "constant" (value) | "range" (start, step) | "eye" (diagonal) |
                     ///< "normal" (mean, scale, seed) | "uniform" (low, high, seed)]
    Trilu,           ///< x[.., m, n] -> same, one triangle set to 0; [upper: 0/1, diagonal]
    ReverseSequence, ///< x, lengths[batch] -> x; [batch_axis, time_axis]
    LocalNorm, ///< x[b,C,..] over its sum of squares in `size` channels around; [size, alpha, beta,
               ///< bias]
    Resize,    ///< x -> [sizes: the full shape]; [scales: of each dim; mode: "nearest"|"linear"|
               ///< "cubic" (cubic_coefficient, exclude_outside); coordinates: ONNX's
               ///< coordinate_transformation_mode; rounding: ONNX's nearest_mode;
               ///< tf_crop_and_resize: region (begin.., end..), outside]
    GridSample, ///< x[b,C,h,w], grid[b,h',w',2] -> [b,C,h',w']; [mode: "linear"|"nearest"|"cubic";
                ///< padding: "zeros"|"border"|"reflection"; align_corners: 0/1]
    RoiAlign,   ///< x[b,C,h,w], regions[r,4] (x, y, x, y), image[r] -> [r,C,height,width];
              ///< [height, width; mode: "avg"|"max"; scale: pixels a unit; sampling_ratio: samples
              ///< of a bin each way, 0 = as many as its pixels; half_pixel: 0/1]
    Recurrent, ///< x[s,b,i] W[D,G*h,i] R[D,G*h,h] (+bias[D,2*G*h], lengths[b], h0[D,b,h],
               ///< c0[D,b,h], peepholes[D,3*h]) -> y[s,D,b,h], h[D,b,h] (, c[D,b,h]);
               ///< [cell: "lstm"|"gru"|"rnn"; direction: "forward"|"reverse"|"bidirectional";
               ///< activations: ONNX's names with commas; alphas, betas: theirs; clip: 0 for none;
               ///< linear_before_reset, input_forget: 0/1]
    Gates,     ///< router logits[.., E] -> weights of the `top_k` chosen experts, 0 for others;
               ///< [top_k; normalize: 0/1, the chosen weights then add up to 1]
    Experts,   ///< x[t.., h], gates[t.., E], w1[E,h,f], w2[E,f,h] (+bias1[E,f], w3[E,h,f],
               ///< bias3[E,f]) -> [t.., h]: sum over E of gate * (act(x w1 + bias1) (* (x w3 +
               ///< bias3))) w2; [function: the activation; top_k, for the FLOPs]. "swiglu": both
               ///< products cut off at `limit` (0: not), a * sigmoid(alpha * a) * (b + beta)
    DynamicSlice,   ///< x, a position (integer scalar) for each dim -> [sizes]; the window is moved
                    ///< inside where it would leave x
    DynamicUpdate,  ///< x, update, a position for each dim -> x with the update there; likewise
    GatherWindows,  ///< data, indices -> windows of the data; [slice_sizes, offset_dims,
                    ///< collapsed_dims, index_map, index_vector_dim, batching_dims (of the data),
                    ///< index_batching_dims: as StableHLO's gather]; windows are moved inside
    ScatterWindows, ///< data.., indices, updates.. -> data..; the same attributes but slice_sizes,
                    ///< as StableHLO's scatter, and [reduction: as Scatter's]; windows that leave
                    ///< the data are dropped
    Sort,           ///< keys, x.. -> all in the order of the keys along [axis; descending: 0/1;
                    ///< k: only the first (absent: all)]; equal keys stay in order
    ReduceWindow,   ///< x.. -> each over windows of all dims; [function: "sum"|"max"|"min"|"prod";
                    ///< kernel, strides, dilations: one a dim; pads: begin.., end..]
    SelectAndScatter, ///< x, source -> like x: the sum of the sources of the windows that chose an
                      ///< element; [function: "max"|"min"; kernel, strides, pads]
    LinearAlgebra,    ///< matrices in the last two dims; [function: "cholesky" (lower: 0/1):
                      ///< a -> l | "solve" (left, lower, unit, transpose: 0/1): triangular a, b ->
                      ///< x | "eigh": a -> vectors, values | "qr": a[m,n] -> reflectors below R,
                      ///< scales[min] | "householder": reflectors[m,n], scales[k] -> Q[m,n]]
    Fourier,    ///< x -> its transform over the last dims; [function: "fft"|"ifft"|"rfft"|"irfft";
                ///< length: of each transformed dim]
    Bitcast,    ///< the bits of x as another type; [to: dtype name]; between widths the last dim
                ///< is split off (wider to narrower, least significant first) or taken up
    RandomBits, ///< state -> state, bits [shape; to: dtype name]
    Gradient,   ///< what the backward pass of another kind computes, in graphs that hold their own:
                ///< operands of it, results, gradients -> gradients of operands; [see gradient.h]
    MoeDispatch,  ///< tokens[b,s,h], scores[b,s,E] -> [E,b,c,h], c = ceil(s*top_k/E*capacity); each
                  ///< token goes to its top_k experts and there takes the next slot of its group
                  ///< (gcd(s,c) groups a sequence), or is dropped; [top_k, capacity_factor]
    MoeCombine,   ///< experts[E,b,c,h], weights[b,s,E] -> [b,s,h]; sum over E; a weight is 0 where
                  ///< the token does not go to the expert; slots are counted as in MoeDispatch
    CrossEntropy, ///< logits[..,V], labels[..] -> scalar mean loss; [reduction: "mean"|"none": the
                  ///< loss of each label; log_probabilities: 0/1: the logits are normalised]
    Collective,   ///< of a graph that is one device's program: x.. -> y..; [function: "all-reduce"|
                  ///< "all-gather"|"reduce-scatter"|"all-to-all"|"permute"|"broadcast"; axis (the
                  ///< dimension gathered or scattered; all-to-all: the one cut), concat_axis
                  ///< (all-to-all: the one joined), group_size, groups (how many), mesh_axes
                  ///< (indices into the partition's mesh, where known), reduce: "sum"|"max"|…]
    Opaque,       ///< not understood: replicated, visible as such; result specs are in the graph;
                  ///< [flops: where the importer knows them]
};

std::string_view nameOf(OpKind kind) noexcept;
std::optional<OpKind> opKindFromName(std::string_view name);

using AttributeValue =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;

/// Attributes of an op, ordered by name so that hashing and writing are deterministic.
class Attributes {
public:
    Attributes() = default;
    Attributes(std::initializer_list<std::pair<const std::string, AttributeValue>> values)
        : m_values(values) {}

    void set(std::string name, AttributeValue value);
    bool has(std::string_view name) const;
    std::int64_t integer(std::string_view name, std::int64_t fallback) const;
    double number(std::string_view name, double fallback) const;
    std::string text(std::string_view name, std::string fallback = {}) const;
    std::vector<std::int64_t> integers(std::string_view name) const; ///< empty if absent
    std::vector<double> numbers(std::string_view name) const;        ///< empty if absent

    const std::map<std::string, AttributeValue, std::less<>>& values() const { return m_values; }
    friend bool operator==(const Attributes&, const Attributes&) = default;

private:
    std::map<std::string, AttributeValue, std::less<>> m_values;
};

struct Op {
    std::string name; ///< unique in its graph
    OpKind kind = OpKind::Opaque;
    std::string type; ///< the name in the source format ("MatMul", "com.microsoft::Foo")
    Attributes attributes;
    std::vector<TensorId> inputs; ///< kNoTensor stands for an absent optional operand
    std::vector<TensorId> outputs;
};

} // namespace shardlens
