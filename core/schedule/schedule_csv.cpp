// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/schedule_csv.h"

#include "core/schedule/placement.h"
#include "core/schedule/rule_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

namespace shardlens::schedule {
namespace {

constexpr std::uint32_t kMostStage = 0xfffe, kMostMicroBatch = (1u << 24) - 1;
constexpr std::size_t kMostActions = 1u << 24;

std::string_view trim(std::string_view text) {
    const auto isSpace = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!text.empty() && isSpace(text.front())) text.remove_prefix(1);
    while (!text.empty() && isSpace(text.back())) text.remove_suffix(1);
    return text;
}

/// Takes what is before the separator off the text.
std::string_view cut(std::string_view& text, char separator) {
    const auto at = text.find(separator);
    const std::string_view part = text.substr(0, at);
    text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
    return part;
}

class Reader {
public:
    Reader(std::string_view text, const std::string& name) : m_text(text), m_name(name) {}

    ImportedSchedule read() {
        if (m_text.starts_with("\xef\xbb\xbf")) m_text.remove_prefix(3);
        const auto last = m_text.find_last_not_of(" \t\r\n");
        m_text = m_text.substr(0, last == std::string_view::npos ? 0 : last + 1);
        if (m_text.empty()) fail("there is no action in it");
        while (!m_text.empty()) {
            if (m_out.orders.lists.size() == kMostDevices) {
                fail(fmt::format("there are more than {} lines", kMostDevices));
            }
            m_out.orders.lists.emplace_back();
            ++m_line;
            row(cut(m_text, '\n'));
        }
        finish();
        return std::move(m_out);
    }

private:
    [[noreturn]] void fail(const std::string& problem) const {
        throw InputError(problem, m_name, "it must be a schedule CSV of PyTorch pipelining");
    }
    [[noreturn]] void failCell(std::string_view cell, const char* problem) const {
        constexpr std::size_t kMostShown = 40;
        const std::string shown(cell.substr(0, kMostShown));
        throw InputError(fmt::format("\"{}\" {}", readable(shown), problem),
                         fmt::format("{}, line {}, cell {}", m_name, m_line, m_cell),
                         "write stage, kind and micro-batch, as 0F3, 2I1 or 1B0");
    }
    static std::string readable(std::string text) {
        std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
        return text;
    }

    void row(std::string_view line) {
        m_cell = 0;
        for (bool more = true; more;) {
            more = line.find(',') != std::string_view::npos;
            ++m_cell;
            std::string_view cell = trim(cut(line, ','));
            if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
                cell = trim(cell.substr(1, cell.size() - 2));
            }
            if (!cell.empty()) action(cell);
        }
    }

    void action(std::string_view cell) {
        if (cell.front() != '(') return single(cell, cell, false);
        std::string_view rest = cell.substr(1);
        std::string_view inside = cut(rest, ')');
        if (rest != "OVERLAP_F_B") failCell(cell, "is no joint action");
        const std::string_view first = trim(cut(inside, ';')), second = trim(inside);
        if (first.empty() || second.empty() || second.find(';') != std::string_view::npos) {
            failCell(cell, "does not join two actions");
        }
        const std::size_t before = list().size();
        single(cell, first, false);
        single(cell, second, true);
        if (list().size() != before + 2) failCell(cell, "joins more than passes of stages");
    }

    std::uint32_t number(std::string_view cell, std::string_view& text, std::uint32_t most) const {
        std::uint32_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc::invalid_argument) failCell(cell, "is no action");
        if (error != std::errc() || value > most) failCell(cell, "has too large a number");
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        return value;
    }

    void single(std::string_view cell, std::string_view text, bool joined) {
        if (++m_actions > kMostActions)
            fail(fmt::format("there are over {} actions", kMostActions));
        Task task;
        task.stage = static_cast<std::uint16_t>(number(cell, text, kMostStage));
        task.device = static_cast<std::uint16_t>(m_out.orders.lists.size() - 1);
        task.joined = joined;
        const auto digit = text.find_first_of("0123456789");
        const std::string_view kind = text.substr(0, digit);
        text.remove_prefix(kind.size());
        static constexpr std::string_view kLeftOut[] = {
            "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
        if (std::ranges::find(kLeftOut, kind) != std::end(kLeftOut)) {
            if (!text.empty()) number(cell, text, kMostMicroBatch);
            if (!text.empty()) failCell(cell, "goes on after its micro-batch");
            ++m_out.leftOut;
            return;
        }
        task.pass = passOf(cell, kind);
        task.microBatch = number(cell, text, kMostMicroBatch);
        if (!text.empty()) failCell(cell, "goes on after its micro-batch");
        list().push_back(task);
    }

    Pass passOf(std::string_view cell, std::string_view kind) {
        if (kind == "F") return Pass::Forward;
        if (kind == "I") return Pass::InputGrad;
        if (kind == "W") return Pass::WeightGrad;
        if (kind == "B") return Pass::Backward;
        if (kind != "BW") failCell(cell, "is no action");
        m_oldLetters = true;
        return Pass::Recompute; // stands for B until it is known what B is
    }

    std::vector<Task>& list() { return m_out.orders.lists.back(); }

    void finish() {
        Orders& orders = m_out.orders;
        orders.devices = static_cast<std::uint32_t>(orders.lists.size());
        for (const auto& tasks : orders.lists) {
            for (const Task& task : tasks) {
                orders.stages = std::max(orders.stages, task.stage + 1u);
                orders.microBatches = std::max(orders.microBatches, task.microBatch + 1u);
            }
        }
        if (orders.stages == 0) fail("there is no pass of a stage in it");
        renameOldLetters();
        try {
            setChunks(Placement(orders));
        } catch (const RuleError& error) {
            throw InputError(error.problem(), m_name + ", " + error.where(), error.hint());
        }
    }

    /// With weight gradients but no I, B was the input gradient alone and BW the whole backward.
    void renameOldLetters() {
        const auto has = [&](Pass pass) {
            return std::ranges::any_of(m_out.orders.lists, [&](const auto& tasks) {
                return std::ranges::find(tasks, pass, &Task::pass) != tasks.end();
            });
        };
        const bool old = m_oldLetters || (has(Pass::WeightGrad) && !has(Pass::InputGrad));
        if (!old) return;
        for (auto& tasks : m_out.orders.lists) {
            for (Task& task : tasks) {
                if (task.pass == Pass::Backward) task.pass = Pass::InputGrad;
                if (task.pass == Pass::Recompute) task.pass = Pass::Backward;
            }
        }
    }

    /// Where a stage is on two devices there is a pipeline down and one up; otherwise chunks are a
    /// device's stages in the order of the model.
    void setChunks(const Placement& placement) {
        Orders& orders = m_out.orders;
        bool bothWays = false;
        for (std::uint32_t i = 1; i < orders.microBatches; ++i) {
            bothWays = bothWays || placement.deviceOf(0, i) != placement.deviceOf(0, 0);
        }
        for (auto& tasks : orders.lists) {
            std::set<std::uint16_t> stages;
            for (const Task& task : tasks) stages.insert(task.stage);
            for (Task& task : tasks) {
                const bool up = placement.deviceOf(0, task.microBatch) >
                                placement.deviceOf(orders.stages - 1, task.microBatch);
                const auto place = std::distance(stages.begin(), stages.find(task.stage));
                task.chunk = static_cast<std::uint8_t>(
                    bothWays ? (up ? 1 : 0) : std::min<std::ptrdiff_t>(place, 255));
            }
        }
    }

    std::string_view m_text;
    const std::string& m_name;
    ImportedSchedule m_out;
    std::size_t m_line = 0, m_cell = 0, m_actions = 0;
    bool m_oldLetters = false;
};

void checkWritable(const Task& task) {
    const bool known =
        task.pass == Pass::Forward || isGradient(task.pass) || task.pass == Pass::WeightGrad;
    if (known && task.slice == 0 && task.round == 0) return;
    throw PlanError(
        fmt::format("{} cannot be written to a schedule CSV of PyTorch", taskName(task)),
        "schedule", "choose a schedule without slices, rounds and shared layers");
}

} // namespace

ImportedSchedule readScheduleCsv(std::string_view text, const std::string& name) {
    return Reader(text, name).read();
}

std::string writeScheduleCsv(const Orders& orders) {
    std::string out;
    const auto name = [](const Task& task) {
        checkWritable(task);
        return taskName(task);
    };
    for (const auto& list : orders.lists) {
        bool first = true;
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (list[i].pass == Pass::Recompute || list[i].pass == Pass::Update) continue;
            if (!first) out += ',';
            first = false;
            if (i + 1 < list.size() && list[i + 1].joined) {
                out += fmt::format("({};{})OVERLAP_F_B", name(list[i]), name(list[i + 1]));
                ++i;
            } else {
                out += name(list[i]);
            }
        }
        out += first ? ",\n" : "\n"; // a last line that is blank would be no rank
    }
    return out;
}

} // namespace shardlens::schedule
