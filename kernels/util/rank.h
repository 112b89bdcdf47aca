// The item of a line that so many others are below, without further memory.
#pragma once

#include <stdint.h>
#include <string.h>

#include "util/isa.h"
#include "util/types.h"

namespace orch {

/// An item as an unsigned integer of the same order; 0 and -0 are one. Not for
/// NaN.
template <typename T>
UnsignedOf<sizeof(T)> key_of(T item) {
  using K = UnsignedOf<sizeof(T)>;
  constexpr K kSign = static_cast<K>(K{1} << (8 * sizeof(T) - 1));
  K bits;
  memcpy(&bits, &item, sizeof bits);
  if constexpr (kIsFloating<T>) {
    if (bits == kSign) bits = 0;
    return static_cast<K>((bits & kSign) != 0 ? ~bits : bits | kSign);
  } else if constexpr (static_cast<T>(-1) > T(0)) {
    return bits;
  } else {
    return static_cast<K>(bits ^ kSign);
  }
}

/// Where NaN is among the items of a line: it is the one that is looked for, or
/// above all numbers.
enum class NanRank { Found, Last };

/// The key of an item that may be NaN, which is above all numbers.
template <NanRank kNan, typename T>
UnsignedOf<sizeof(T)> rank_key(T item) {
  if constexpr (kNan == NanRank::Last && kIsFloating<T>) {
    if (is_nan(number_of(item))) {
      return static_cast<UnsignedOf<sizeof(T)>>(~uint64_t{0});
    }
  }
  return key_of(item);
}

/// Index of the item that `rank` of the `count` items are below, the first of
/// several. `rank` is less than `count`.
///
/// A search for the bits of its key, four at a time from the highest: items
/// that may not be moved are counted.
template <NanRank kNan, typename T>
ORCH_HOT int32_t index_of_rank(const T* items, int32_t step, int32_t count,
                               int32_t rank) {
  using K = UnsignedOf<sizeof(T)>;
  K low = rank_key<kNan>(items[0]);
  K high = low;
  for (int32_t i = 0; i < count; ++i) {
    const T item = items[i * step];
    if (kNan == NanRank::Found && is_nan(number_of(item))) return i;
    const K key = rank_key<kNan>(item);
    if (key < low) low = key;
    if (key > high) high = key;
  }
  // Bits that not all keys share.
  int bit = 0;
  while (bit < static_cast<int>(8 * sizeof(K)) &&
         (low >> bit) != (high >> bit)) {
    ++bit;
  }
  // The shift by all bits would be undefined.
  K found = bit == 8 * sizeof(K)
                ? K{0}
                : static_cast<K>(static_cast<K>(low >> bit) << bit);
  K known = bit == 8 * sizeof(K) ? K{0} : static_cast<K>(~uint64_t{0} << bit);
  // `rank` is among the items that share known bits.
  while (bit > 0) {
    bit = bit < 4 ? 0 : bit - 4;
    int32_t counts[16] = {};
    for (int32_t i = 0; i < count; ++i) {
      const K key = rank_key<kNan>(items[i * step]);
      if (((key ^ found) & known) == 0) ++counts[(key >> bit) & 15];
    }
    // Bits that are known are among the four if fewer were left.
    int digit =
        static_cast<int>(found >> bit) & static_cast<int>(known >> bit) & 15;
    while (digit < 15 && rank >= counts[digit]) rank -= counts[digit++];
    found =
        static_cast<K>(found | static_cast<K>(static_cast<K>(digit) << bit));
    known = static_cast<K>(~uint64_t{0} << bit);
  }
  for (int32_t i = 0; i < count; ++i) {
    if (rank_key<kNan>(items[i * step]) == found) return i;
  }
  return 0;  // items that change meanwhile
}

}  // namespace orch
