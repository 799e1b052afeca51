// SPDX-License-Identifier: Apache-2.0
// Schedule CSV of PyTorch: anything may be in it. What is read can be compiled, and either runs or
// contradicts itself by a cycle that is one; written again and read it is the same schedule.
#include "core/schedule/cycle.h"
#include "core/schedule/rule_error.h"
#include "core/schedule/schedule_csv.h"
#include "core/schedule/timeline.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace shardlens;
using namespace shardlens::schedule;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Orders orders;
    try {
        orders = readScheduleCsv({reinterpret_cast<const char*>(data), size}, "input").orders;
    } catch (const InputError&) {
        return 0;
    }
    const Orders again = readScheduleCsv(writeScheduleCsv(orders), "again").orders;
    if (again.lists != orders.lists) std::abort();
    const Program program = compile(ScheduleSpec{}, orders);
    const bool contradicts = !findCycle(program).empty();
    try {
        const Timeline timeline = simulate(program);
        if (contradicts) std::abort();
        const Account result = account(program, timeline);
        for (const DeviceUse& use : result.devices) {
            double sum = use.busy;
            for (const double idle : use.idle) sum += idle;
            if (!(sum > timeline.makespan * (1 - 1e-9) && sum < timeline.makespan * (1 + 1e-9))) {
                std::abort();
            }
        }
    } catch (const RuleError&) {
        if (!contradicts) std::abort();
    }
    return 0;
}
