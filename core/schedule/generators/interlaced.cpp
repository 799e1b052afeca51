// SPDX-License-Identifier: Apache-2.0
// The interlaced pipeline (SuperScaler, Lin et al. 2024): 1F1B between layers that are too large
// for one stage, embeddings above all. Those are shared by all devices, which compute them
// together; so no stage is longer than the others, and each device holds a part of the embedding.
//
// Between two such moments a device runs one forward and one backward: a step. Even stages go
// forward first, odd ones backward, so that a micro-batch passes two stages forward in a step. In
// the published form it passes two backward as well, which keeps 1F1B's memory, but a backward that
// takes longer than a forward then waits in every step. By default it passes one: no wait, and up
// to 1.5 p micro-batches in flight. A limit below that chooses the published form.
#include "core/schedule/generators/generators.h"

namespace shardlens::schedule {
namespace {

using Step = std::int64_t;

class Steps {
public:
    Steps(const ScheduleSpec& spec, ListWriter& out)
        : m_spec(spec), m_out(out), m_stages(spec.devices),
          m_published(spec.limit > 0 && spec.limit < 1.5 * spec.devices) {}

    void write() {
        const Step decoder = m_stages / 2, last = m_spec.microBatches + backwardStep(0);
        const bool two = m_spec.embeddings > 1;
        for (Step step = 0; step < last; ++step) {
            shared(Pass::Embed, step - forwardStep(0), 0, 0);
            if (two) shared(Pass::Embed, step - forwardStep(decoder), 1, decoder);
            for (Step k = 0; k < m_stages; ++k) stage(step, k);
            if (two) shared(Pass::EmbedGrad, step - backwardStep(decoder), 1, decoder);
            shared(Pass::EmbedGrad, step - backwardStep(0), 0, 0);
        }
    }

private:
    /// In which step a stage has micro-batch 0.
    Step forwardStep(Step k) const { return k / 2; }
    Step backwardStep(Step k) const {
        if (m_published) return m_stages - 1 - k / 2;
        const Step last = m_stages - 1; // goes backward first if it is odd: one step later
        return forwardStep(last) + last % 2 + last - k;
    }
    bool exists(Step i) const { return i >= 0 && i < m_spec.microBatches; }

    /// All devices together, for the stage that needs it or whose gradient it takes.
    void shared(Pass pass, Step i, std::uint8_t which, Step stage) {
        if (!exists(i)) return;
        for (std::uint32_t d = 0; d < m_spec.devices; ++d) {
            Task task;
            task.microBatch = static_cast<std::uint32_t>(i);
            task.stage = static_cast<std::uint16_t>(stage);
            task.device = static_cast<std::uint16_t>(d);
            task.pass = pass;
            task.round = which;
            m_out.add(task);
        }
    }
    void stage(Step step, Step k) {
        const bool even = k % 2 == 0;
        for (const bool forward : {even, !even}) {
            const Step i = step - (forward ? forwardStep(k) : backwardStep(k));
            if (!exists(i)) continue;
            m_out.add(static_cast<std::uint32_t>(k), forward ? Pass::Forward : Pass::Backward,
                      static_cast<std::uint32_t>(i));
        }
    }

    const ScheduleSpec& m_spec;
    ListWriter& m_out;
    Step m_stages;
    bool m_published;
};

} // namespace

Orders makeInterlaced(const ScheduleSpec& spec) {
    demandPlain(spec);
    demand(spec.embeddings == 1 || spec.embeddings == 2, spec,
           "there is neither one shared layer nor two", "choose 1 (encoder) or 2 (and decoder)");
    demand(spec.embeddings == 1 || spec.devices >= 2, spec,
           "there are too few stages for two shared layers", "let p be at least 2");
    ListWriter out(spec, spec.devices, loops(spec.devices));
    Steps(spec, out).write();
    return out.finish();
}

} // namespace shardlens::schedule
