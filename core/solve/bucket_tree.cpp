// SPDX-License-Identifier: Apache-2.0
// Scopes of messages are sorted so that the variable needed next comes last: that is the layout in
// which the next bucket reads them without a copy.
#include "core/solve/bucket_tree.h"

#include "core/solve/problem.h"

#include <map>

namespace shardlens::solve {

BucketTree::BucketTree(std::vector<std::uint32_t> dims, std::vector<Scope> factors,
                       const std::vector<Var>& order, Monitor& monitor)
    : m_dims(std::move(dims)), m_factors(factors.size()), m_buckets(order.size()),
      m_position(m_dims.size(), kNone) {
    for (std::size_t b = 0; b < order.size(); ++b) {
        m_position[order[b]] = b;
        m_buckets[b].var = order[b];
    }
    for (Var v = 0, next = static_cast<Var>(order.size()); v < m_dims.size(); ++v) {
        if (m_position[v] == kNone) m_position[v] = next++;
    }
    for (Scope& scope : factors) m_tables.push_back({std::move(scope), nullptr});
    m_tables.resize(m_factors + order.size());
    const auto give = [&](std::size_t table) {
        std::size_t bucket = kNone;
        for (const Var v : m_tables[table].scope) bucket = std::min(bucket, m_position[v]);
        if (bucket == kNone) {
            m_constants.push_back(table);
        } else if (bucket >= m_buckets.size()) {
            m_remaining.push_back(table);
        } else {
            m_buckets[bucket].inputs.push_back(table);
            return bucket;
        }
        return kNone;
    };
    for (std::size_t f = 0; f < m_factors; ++f) give(f);
    std::map<std::vector<std::uint32_t>, std::size_t> forms;
    for (std::size_t b = 0; b < m_buckets.size(); ++b) {
        monitor.tick(10'000);
        Bucket& bucket = m_buckets[b];
        std::vector<const Table*> tables;
        std::vector<Scope> scopes;
        for (const std::size_t t : bucket.inputs) {
            tables.push_back(&m_tables[t]);
            scopes.push_back(m_tables[t].scope);
        }
        Scope keep = sortedUnion(tables);
        std::erase(keep, bucket.var);
        bucket.up.emplace(m_dims, std::move(scopes), keep, Scope{bucket.var});
        m_tables[message(b)].scope = bucket.up->scope();
        bucket.form =
            forms.try_emplace(formOf(bucket, bucket.up->scope()), forms.size()).first->second;
        bucket.parent = give(message(b));
        if (bucket.parent != kNone) m_buckets[bucket.parent].children.push_back(b);
    }
}

std::vector<std::uint32_t> BucketTree::formOf(const Bucket& bucket, const Scope& result) const {
    Scope known;
    std::vector<std::uint32_t> form;
    const auto add = [&](const Scope& scope) {
        form.push_back(static_cast<std::uint32_t>(scope.size()));
        for (const Var v : scope) {
            const auto at = std::ranges::find(known, v);
            form.push_back(static_cast<std::uint32_t>(at - known.begin()));
            if (at == known.end()) known.push_back(v);
        }
    };
    add({bucket.var});
    for (const std::size_t t : bucket.inputs) add(m_tables[t].scope);
    add(result);
    for (const Var v : known) form.push_back(m_dims[v]);
    return form;
}

Scope BucketTree::sortedUnion(std::span<const Table* const> tables) const {
    Scope all;
    for (const Table* table : tables) {
        all.insert(all.end(), table->scope.begin(), table->scope.end());
    }
    std::ranges::sort(all, std::greater<>{}, [&](Var v) { return m_position[v]; });
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

void BucketTree::eliminate(Monitor& monitor) {
    using Key = std::pair<std::size_t, std::vector<const double*>>; // form and inputs
    std::map<Key, Values> known;
    for (std::size_t b = 0; b < m_buckets.size(); ++b) {
        Bucket& bucket = m_buckets[b];
        bucket.down.reset();
        std::vector<const double*> values;
        for (const std::size_t t : bucket.inputs) values.push_back(m_tables[t].values.get());
        Values& result = known[{bucket.form, values}];
        if (result) {
            m_tables[message(b)].values = result;
            continue;
        }
        auto out = std::make_shared_for_overwrite<double[]>(bucket.up->size());
        bucket.up->run(m_dims, values, out.get(), monitor);
        m_tables[message(b)].values = result = std::move(out);
    }
}

double BucketTree::constant() const {
    return constantWithout(kNone);
}

double BucketTree::constantWithout(std::size_t table) const {
    double sum = 0;
    for (const std::size_t t : m_constants) {
        if (t != table) sum += m_tables[t].values[0];
    }
    return sum;
}

std::vector<const Table*> BucketTree::remaining() const {
    std::vector<const Table*> out;
    for (const std::size_t t : m_remaining) out.push_back(&m_tables[t]);
    return out;
}

void BucketTree::decode(std::vector<std::uint32_t>& value) const {
    std::vector<double> sum;
    for (std::size_t b = m_buckets.size(); b-- > 0;) {
        const Bucket& bucket = m_buckets[b];
        sum.assign(m_dims[bucket.var], 0.0);
        for (const std::size_t t : bucket.inputs) {
            const Table& table = m_tables[t];
            std::size_t offset = 0, step = 1, along = 0;
            for (std::size_t i = table.scope.size(); i-- > 0;) {
                const Var v = table.scope[i];
                if (v == bucket.var) {
                    along = step;
                } else {
                    offset += step * value[v];
                }
                step *= m_dims[v];
            }
            const double* values = table.values.get() + offset;
            for (std::size_t c = 0; c < sum.size(); ++c) {
                sum[c] += values[c * along];
            }
        }
        value[bucket.var] = static_cast<std::uint32_t>(std::ranges::min_element(sum) - sum.begin());
    }
}

std::vector<const Table*> BucketTree::inputs(std::size_t bucket, std::size_t leftOut) const {
    std::vector<const Table*> out;
    for (const std::size_t t : m_buckets[bucket].inputs) {
        if (t != leftOut) out.push_back(&m_tables[t]);
    }
    if (m_buckets[bucket].down) out.push_back(&*m_buckets[bucket].down);
    return out;
}

namespace {

/// The join of some tables onto the variables that `wanted` has.
template <class Wanted>
Table project(Dims dims, std::span<const Table* const> tables, const Scope& all, Wanted&& wanted,
              Monitor& monitor) {
    Scope keep, drop;
    for (const Var v : all) (wanted(v) ? keep : drop).push_back(v);
    std::vector<Scope> scopes;
    std::vector<const double*> values;
    for (const Table* table : tables) {
        scopes.push_back(table->scope);
        values.push_back(table->values.get());
    }
    const Join join(dims, std::move(scopes), keep, drop);
    auto out = std::make_shared_for_overwrite<double[]>(join.size());
    join.run(dims, values, out.get(), monitor);
    return {join.scope(), std::move(out)};
}

} // namespace

void BucketTree::sweepDown(Monitor& monitor) {
    for (std::size_t b = m_buckets.size(); b-- > 0;) {
        for (const std::size_t child : m_buckets[b].children) {
            const auto tables = inputs(b, message(child));
            if (tables.empty()) continue;
            const Scope& scope = m_tables[message(child)].scope;
            m_buckets[child].down = project(
                m_dims, tables, sortedUnion(tables), [&](Var v) { return contains(scope, v); },
                monitor);
        }
    }
}

std::vector<double> BucketTree::marginal(Var var, Monitor& monitor) const {
    const std::size_t b = m_position[var];
    std::size_t root = b;
    while (m_buckets[root].parent != kNone) root = m_buckets[root].parent;
    const double others = constantWithout(message(root));
    const auto tables = inputs(b, kNone);
    std::vector<double> out(m_dims[var], others);
    if (tables.empty()) return out;
    const Table own =
        project(m_dims, tables, sortedUnion(tables), [&](Var v) { return v == var; }, monitor);
    const double* values = own.values.get();
    for (std::size_t c = 0; c < out.size(); ++c) out[c] += values[c];
    return out;
}

} // namespace shardlens::solve
