// SPDX-License-Identifier: Apache-2.0
// The schedule CSV of PyTorch pipelining (torch/distributed/pipelining/schedules.py, _load_csv and
// _dump_csv): a line for each rank, a cell for each action, empty where the rank waits. An action
// is stage, kind, micro-batch: 0F3, 2I1, 2W1, 1B3; joint ones are (0F7;7B3)OVERLAP_F_B. Transfers
// and sharding (SEND_F, UNSHARD, REDUCE_GRAD …) may be among them; they follow from the rest and
// are left out. Files from before input gradients were called I, which have B and W or BW, are read
// too.
#pragma once

#include "core/schedule/orders.h"

#include <string>
#include <string_view>

namespace shardlens::schedule {

struct ImportedSchedule {
    Orders orders;
    std::size_t leftOut = 0; ///< transfers and sharding
};

/// @param name of the file, for messages
/// @throws InputError naming line and cell: what is no action, what is missing or there twice
ImportedSchedule readScheduleCsv(std::string_view text, const std::string& name);

/// Compute actions only, as PyTorch's format "compute_only". Recomputation and updates, which
/// PyTorch does by itself, are left out.
/// @throws PlanError when the schedule has what the format cannot say: slices, rounds, shared
/// layers
std::string writeScheduleCsv(const Orders& orders);

} // namespace shardlens::schedule
