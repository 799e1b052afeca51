// SPDX-License-Identifier: Apache-2.0
// What a stretch of a model takes on one device of its mesh: seconds of one micro-batch by pass,
// seconds once a step, bytes that stay and bytes a micro-batch keeps. Additive along the model.
#pragma once

namespace shardlens {

struct StageFigures {
    // Seconds of one micro-batch, collectives inside the mesh included.
    double forward = 0, inputGrad = 0, weightGrad = 0;
    double cheapForward =
        0; ///< of `forward`: memory-bound ops, repeated by selective recomputation
    // Seconds once a step.
    double sync = 0;      ///< collectives of gradients and parameters inside the mesh
    double optimizer = 0; ///< update of all parameters that the device holds
    // Bytes.
    double parameters = 0, gradients = 0, optimizerState = 0;
    /// Of these, and of `optimizer`, what belongs to experts: other devices have copies of it.
    struct Held {
        double parameters = 0, gradients = 0, optimizerState = 0, optimizer = 0;
    } experts;
    double kept = 0;         ///< by one micro-batch for its backward pass, nothing recomputed
    double recomputable = 0; ///< of `kept`: results of memory-bound ops
    double entry = 0;        ///< what full recomputation keeps: the inputs of each unit

    double seconds() const { return forward + inputGrad + weightGrad; }

    /// Calls f(figure of this, figure of the other) for each of them.
    template <typename F>
    void eachWith(const StageFigures& other, F&& f) {
        f(forward, other.forward);
        f(inputGrad, other.inputGrad);
        f(weightGrad, other.weightGrad);
        f(cheapForward, other.cheapForward);
        f(sync, other.sync);
        f(optimizer, other.optimizer);
        f(parameters, other.parameters);
        f(gradients, other.gradients);
        f(optimizerState, other.optimizerState);
        f(experts.parameters, other.experts.parameters);
        f(experts.gradients, other.experts.gradients);
        f(experts.optimizerState, other.experts.optimizerState);
        f(experts.optimizer, other.experts.optimizer);
        f(kept, other.kept);
        f(recomputable, other.recomputable);
        f(entry, other.entry);
    }

    /// Adds the other's figures `times` over.
    StageFigures& add(const StageFigures& other, double times) {
        eachWith(other, [times](double& mine, double its) { mine += times * its; });
        return *this;
    }
    StageFigures& operator+=(const StageFigures& other) { return add(other, 1); }
    friend StageFigures operator+(StageFigures a, const StageFigures& b) { return a += b; }
};

} // namespace shardlens
