// SPDX-License-Identifier: Apache-2.0
// What every field of a form has: a name for tests, one for assistive technology, and a tip.
#pragma once

#include <QString>

namespace shardlens {

/// @return the field
template <typename Field>
Field* named(Field* field, const QString& object, const QString& accessible, const QString& tip) {
    field->setObjectName(object);
    field->setAccessibleName(accessible);
    field->setToolTip(tip);
    return field;
}

} // namespace shardlens
