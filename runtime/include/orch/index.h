// How tables of methods name values, and what they can hold.
#pragma once

#include <stdint.h>

/// Bytes of a value index. The build gives all sources of a product the same: 4
/// where a program is loaded, as indices are used in place there; 1 or 2 where
/// all methods are prelinked, whose tables are then compact.
#ifndef ORCH_INDEX_BYTES
#define ORCH_INDEX_BYTES 4
#endif

/// 0 if all methods are prelinked and no tensor changes its sizes.
#ifndef ORCH_DYNAMIC_SIZES
#define ORCH_DYNAMIC_SIZES 1
#endif

namespace orch {

static_assert(ORCH_INDEX_BYTES == 1 || ORCH_INDEX_BYTES == 2 ||
                  ORCH_INDEX_BYTES == 4,
              "bytes of a value index");

inline constexpr bool kDynamicSizes = ORCH_DYNAMIC_SIZES != 0;
inline constexpr bool kCompact = ORCH_INDEX_BYTES != 4;

#if ORCH_INDEX_BYTES == 1
using ValueIndex = uint8_t;
using IntItem = uint8_t;
#elif ORCH_INDEX_BYTES == 2
using ValueIndex = uint16_t;
using IntItem = uint16_t;
#else
using ValueIndex = int32_t;
/// Value index in a list of ints.
using IntItem = int64_t;
#endif

/// In a list of tensors: the item is None.
inline constexpr ValueIndex kNoValue = static_cast<ValueIndex>(-1);

}  // namespace orch
