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
    double kept = 0;         ///< by one micro-batch for its backward pass, nothing recomputed
    double recomputable = 0; ///< of `kept`: results of memory-bound ops
    double entry = 0;        ///< what full recomputation keeps: the inputs of each unit

    double seconds() const { return forward + inputGrad + weightGrad; }

    StageFigures& operator+=(const StageFigures& other) {
        forward += other.forward;
        inputGrad += other.inputGrad;
        weightGrad += other.weightGrad;
        cheapForward += other.cheapForward;
        sync += other.sync;
        optimizer += other.optimizer;
        parameters += other.parameters;
        gradients += other.gradients;
        optimizerState += other.optimizerState;
        kept += other.kept;
        recomputable += other.recomputable;
        entry += other.entry;
        return *this;
    }
    friend StageFigures operator+(StageFigures a, const StageFigures& b) { return a += b; }
};

} // namespace shardlens
