// SPDX-License-Identifier: Apache-2.0
// Ranks as threads. The members of a group meet twice a collective: once when all have shown their
// array, and once when all have read what they need, so that nobody takes an array away too early.
#include "core/error.h"
#include "core/execute/communicator.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace shardlens {

namespace {

/// What all ranks of a run share: whether one of them has failed.
struct Failure {
    std::mutex guard;
    std::condition_variable changed;
    std::exception_ptr error;
};

/// Thrown in the ranks that wait for one that failed; never leaves this file.
struct Abandoned {};

/// The meeting place of the ranks of one group.
class Group {
public:
    Group(std::size_t size, Failure& failure) : m_arrays(size, nullptr), m_failure(failure) {}

    /// Shows an array and waits for those of the others. `use` reads them.
    template <typename Use>
    void meet(std::size_t member, const Array& array, Use use) {
        m_arrays[member] = &array;
        wait();
        std::exception_ptr error; // the others may still be reading our array: meet them first
        try {
            use(std::as_const(m_arrays));
        } catch (...) {
            error = std::current_exception();
        }
        wait();
        if (error) std::rethrow_exception(error);
    }

private:
    void wait() {
        std::unique_lock lock(m_failure.guard);
        const std::size_t round = m_round;
        if (++m_arrived == m_arrays.size()) {
            m_arrived = 0;
            ++m_round;
            m_failure.changed.notify_all();
            return;
        }
        m_failure.changed.wait(lock, [&] { return m_round != round || m_failure.error; });
        if (m_round == round) throw Abandoned{};
    }

    std::vector<const Array*> m_arrays;
    std::size_t m_arrived = 0, m_round = 0;
    Failure& m_failure;
};

template <typename T>
void combine(std::vector<T>& sum, const std::vector<T>& part, ReduceOp reduce) {
    const auto apply = [&](auto function) {
        std::ranges::transform(sum, part, sum.begin(), function);
    };
    switch (reduce) {
    case ReduceOp::Sum:
        return apply([](T a, T b) { return a + b; });
    case ReduceOp::Max:
        return apply([](T a, T b) { return a < b ? b : a; });
    case ReduceOp::Min:
        return apply([](T a, T b) { return b < a ? b : a; });
    case ReduceOp::Prod:
        return apply([](T a, T b) { return a * b; });
    }
}

Array reduced(const std::vector<const Array*>& arrays, ReduceOp reduce) {
    Array sum = *arrays.front();
    for (std::size_t i = 1; i < arrays.size(); ++i) {
        if (arrays[i]->shape != sum.shape) throw Error("ranks reduce arrays of unequal shapes");
        combine(sum.reals, arrays[i]->reals, reduce);
        combine(sum.ints, arrays[i]->ints, reduce);
    }
    return sum;
}

Array part(const Array& array, std::size_t dim, std::size_t index, std::size_t count) {
    const std::int64_t size = array.shape[dim] / static_cast<std::int64_t>(count);
    if (size * static_cast<std::int64_t>(count) != array.shape[dim])
        throw Error("a dimension is not cut evenly");
    return sliceOf(array, dim, static_cast<std::int64_t>(index) * size, size);
}

class InProcess : public Communicator {
public:
    /// @param groups by axis, the group of this rank
    InProcess(const Mesh& mesh, std::vector<int> coordinates, std::vector<Group*> groups)
        : m_mesh(mesh), m_coordinates(std::move(coordinates)), m_groups(std::move(groups)) {}

    const Mesh& mesh() const override { return m_mesh; }
    std::span<const int> coordinates() const override { return m_coordinates; }

    void allReduce(std::size_t axis, Array& array, ReduceOp reduce) override {
        Array sum;
        meet(axis, array, [&](const auto& arrays) { sum = reduced(arrays, reduce); });
        array = std::move(sum);
    }

    Array allGather(std::size_t axis, const Array& array, std::size_t dim) override {
        Array whole;
        meet(axis, array, [&](const auto& arrays) {
            std::vector<Array> parts;
            for (const Array* each : arrays) parts.push_back(*each);
            whole = joined(parts, dim);
        });
        return whole;
    }

    Array reduceScatter(std::size_t axis, const Array& array, std::size_t dim) override {
        Array mine;
        meet(axis, array, [&](const auto& arrays) {
            mine = part(reduced(arrays, ReduceOp::Sum), dim, member(axis), arrays.size());
        });
        return mine;
    }

    Array allToAll(std::size_t axis, const Array& array, std::size_t split,
                   std::size_t join) override {
        Array mine;
        meet(axis, array, [&](const auto& arrays) {
            std::vector<Array> parts;
            for (const Array* each : arrays)
                parts.push_back(part(*each, split, member(axis), arrays.size()));
            mine = joined(parts, join);
        });
        return mine;
    }

private:
    std::size_t member(std::size_t axis) const {
        return static_cast<std::size_t>(m_coordinates[axis]);
    }
    template <typename Use>
    void meet(std::size_t axis, const Array& array, Use use) {
        m_groups[axis]->meet(member(axis), array, use);
    }

    const Mesh& m_mesh;
    std::vector<int> m_coordinates;
    std::vector<Group*> m_groups;
};

} // namespace

void runInProcess(const Mesh& mesh, const std::function<void(int, Communicator&)>& program) {
    Failure failure;
    std::vector<std::vector<std::unique_ptr<Group>>> groups(mesh.axes.size());
    std::vector<InProcess> ranks;
    for (int rank = 0; rank < mesh.devices(); ++rank) {
        const std::vector<int> at = mesh.coordinates(rank);
        std::vector<Group*> mine;
        for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
            std::size_t index = 0; // of the group: the coordinates on the other axes
            for (std::size_t b = 0; b < mesh.axes.size(); ++b)
                if (b != a)
                    index = index * static_cast<std::size_t>(mesh.axes[b].size) +
                            static_cast<std::size_t>(at[b]);
            while (groups[a].size() <= index)
                groups[a].push_back(
                    std::make_unique<Group>(static_cast<std::size_t>(mesh.axes[a].size), failure));
            mine.push_back(groups[a][index].get());
        }
        ranks.emplace_back(mesh, at, std::move(mine));
    }
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < mesh.devices(); ++rank)
            threads.emplace_back([&, rank] {
                try {
                    program(rank, ranks[static_cast<std::size_t>(rank)]);
                } catch (const Abandoned&) {
                } catch (...) {
                    const std::scoped_lock lock(failure.guard);
                    if (!failure.error) failure.error = std::current_exception();
                    failure.changed.notify_all();
                }
            });
    }
    if (failure.error) std::rethrow_exception(failure.error);
}

} // namespace shardlens
