#include "orch_selected/op_median.h"

#include "orch/kernel.h"
#include "util/isa.h"
#include "util/reduce.h"

namespace orch::portable {
namespace {

/// Unsigned integers of the size of an item.
template <size_t kBytes>
using Bits = typename Choose<
    kBytes == 8, uint64_t,
    typename Choose<
        kBytes == 4, uint32_t,
        typename Choose<kBytes == 2, uint16_t, uint8_t>::type>::type>::type;

/// An item as an unsigned integer of the same order; 0 and -0 are one. Not for
/// NaN.
template <typename T>
Bits<sizeof(T)> key_of(T item) {
  using K = Bits<sizeof(T)>;
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

/// Index of the median of `count` items, the first of several; of the lower one
/// of two. NaN is the median of items with a NaN.
///
/// A search for the bits of its key, four at a time from the highest: items
/// that may not be moved are counted.
template <typename T>
ORCH_HOT int32_t index_of_median(const T* items, int32_t step, int32_t count) {
  using K = Bits<sizeof(T)>;
  K low = key_of(items[0]);
  K high = low;
  for (int32_t i = 0; i < count; ++i) {
    const T item = items[i * step];
    if (is_nan(number_of(item))) return i;
    const K key = key_of(item);
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
  K median = bit == 8 * sizeof(K)
                 ? K{0}
                 : static_cast<K>(static_cast<K>(low >> bit) << bit);
  K known = bit == 8 * sizeof(K) ? K{0} : static_cast<K>(~uint64_t{0} << bit);
  int32_t rank = (count - 1) / 2;  // among the items that share known bits
  while (bit > 0) {
    bit = bit < 4 ? 0 : bit - 4;
    int32_t counts[16] = {};
    for (int32_t i = 0; i < count; ++i) {
      const K key = key_of(items[i * step]);
      if (((key ^ median) & known) == 0) ++counts[(key >> bit) & 15];
    }
    // Bits that are known are among the four if fewer were left.
    int digit =
        static_cast<int>(median >> bit) & static_cast<int>(known >> bit) & 15;
    while (digit < 15 && rank >= counts[digit]) rank -= counts[digit++];
    median =
        static_cast<K>(median | static_cast<K>(static_cast<K>(digit) << bit));
    known = static_cast<K>(~uint64_t{0} << bit);
  }
  for (int32_t i = 0; i < count; ++i) {
    if (key_of(items[i * step]) == median) return i;
  }
  return 0;  // items that change meanwhile
}

}  // namespace

// aten::median.dim_values(Tensor self, int dim, bool keepdim=False, *,
//   Tensor(a!) values, Tensor(b!) indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error median_dim_values(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_median_dim_values;
  return pick_along<kDtypes.bits>(
      args, [](auto* items, const StridedLoop& line) {
        return index_of_median(items, line.row_stride(0), line.row_size());
      });
}

}  // namespace orch::portable
