// The first items of a line in sorted order, without further memory.
#pragma once

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/lines.h"

namespace orch {

/// Where a line is read, and where its sorted items and their indices go.
template <typename T>
struct SortLine {
  const T* from;
  int32_t from_step;
  T* values;
  int32_t values_step;
  int64_t* indices;
  int32_t indices_step;
  bool descending;

  /// An item and its index.
  struct Entry {
    T value;
    int32_t index;
  };

  Entry at(int32_t slot) const {
    return {values[slot * values_step],
            static_cast<int32_t>(indices[slot * indices_step])};
  }
  void put(int32_t slot, const Entry& entry) const {
    values[slot * values_step] = entry.value;
    indices[slot * indices_step] = entry.index;
  }
  Entry item(int32_t index) const { return {from[index * from_step], index}; }

  /// Whether `a` comes after `b`: NaN is above all numbers, and of equal items
  /// that with the lower index comes first.
  bool after(const Entry& a, const Entry& b) const {
    auto low = number_of(descending ? a.value : b.value);
    auto high = number_of(descending ? b.value : a.value);
    if (low < high || (is_nan(high) && !is_nan(low))) return true;
    if (high < low || (is_nan(low) && !is_nan(high))) return false;
    return a.index > b.index;
  }

  /// Puts an entry into the heap of the first `size` slots, in place of the
  /// one at the root: no slot comes after its parent, (slot - 1) / 2.
  __attribute__((noinline)) void sift(const Entry& entry, int32_t size) const {
    int32_t slot = 0;
    // Down to a leaf, along those that come last. The entry mostly came from
    // the end of the heap and belongs there.
    for (int32_t child = 1; child < size; child = 2 * slot + 1) {
      Entry last = at(child);
      if (child + 1 < size) {
        const Entry other = at(child + 1);
        if (after(other, last)) {
          last = other;
          ++child;
        }
      }
      put(slot, last);
      slot = child;
    }
    rise(entry, slot);
  }

  /// Puts an entry where it belongs on the way from a free slot to the root.
  void rise(const Entry& entry, int32_t slot) const {
    while (slot > 0) {
      const int32_t parent = (slot - 1) / 2;
      const Entry above = at(parent);
      if (!after(entry, above)) break;
      put(slot, above);
      slot = parent;
    }
    put(slot, entry);
  }

  /// Whether `b`, which has the higher index, comes before `a`.
  bool before(T b, T a) const {
    const auto low = number_of(descending ? a : b);
    const auto high = number_of(descending ? b : a);
    if (low >= high) return false;
    // NaN is above all numbers.
    return low < high || (is_nan(high) && !is_nan(low));
  }

  /// Sorts all items: runs of indices are merged to longer ones, to and fro
  /// between the two halves of the 64 bits that each index will have.
  ORCH_HOT void merge(int32_t size) const {
    int32_t* from_half = reinterpret_cast<int32_t*>(indices);
    int32_t* to_half = from_half + 1;
    const int32_t step = 2 * indices_step;
    for (int32_t i = 0; i < size; ++i) from_half[i * step] = i;
    for (int32_t width = 1; width < size; width *= 2) {
      for (int32_t first = 0; first < size; first += 2 * width) {
        const int32_t middle = size - first < width ? size : first + width;
        const int32_t end = size - middle < width ? size : middle + width;
        const int32_t* left = from_half + first * step;
        const int32_t* right = from_half + middle * step;
        int32_t lefts = middle - first;
        int32_t rights = end - middle;
        int32_t* target = to_half + first * step;
        if (rights != 0) {
          T a = from[*left * from_step];
          T b = from[*right * from_step];
          for (;;) {
            if (before(b, a)) {
              *target = *right;
              target += step;
              right += step;
              if (--rights == 0) break;
              b = from[*right * from_step];
            } else {
              *target = *left;
              target += step;
              left += step;
              if (--lefts == 0) break;
              a = from[*left * from_step];
            }
          }
        }
        for (; lefts > 0; --lefts, left += step, target += step)
          *target = *left;
        for (; rights > 0; --rights, right += step, target += step) {
          *target = *right;
        }
      }
      int32_t* const other = from_half;
      from_half = to_half;
      to_half = other;
    }
    for (int32_t i = 0; i < size; ++i) {
      int32_t index = from_half[i * step];
      // Where memories overlap, what was written may be an index.
      if (static_cast<uint32_t>(index) >= static_cast<uint32_t>(size))
        index = 0;
      put(i, item(index));
    }
  }

  /// Writes the first `count` of `size` items in sorted order.
  void run(int32_t size, int32_t count) const {
    if (count == 0) return;
    for (int32_t i = 0; i < count; ++i) rise(item(i), i);
    for (int32_t i = count; i < size; ++i) {
      const Entry next = item(i);
      if (after(at(0), next)) sift(next, count);
    }
    for (int32_t i = count - 1; i > 0; --i) {
      const Entry last = at(0);
      sift(at(i), i);
      put(i, last);
    }
  }
};

/// The first `count` items, in sorted order, of every line of `self` along
/// `dim`, and their indices: O(n log count), equal items in the order of their
/// indices. Gives both outputs their sizes; they have 'count' there.
///
/// kBits: dtypes of `self`; kWhole: whether `count` is that of all items.
/// Errors: InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits, bool kWhole>
Error sort_lines(const Tensor& self, int dim, int32_t count, bool descending,
                 Tensor& values, Tensor& indices) {
  ORCH_CHECK(values.dtype == self.dtype && indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = i == dim ? count : self.size(i);
  const Span<const int32_t> shape{sizes, self.dim};
  ORCH_TRY(resize_output(values, shape, self));
  ORCH_TRY(resize_output(indices, shape, self, values));
  Lines lines(self, dim, values, indices);
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    each_line(lines, [&](int32_t to, int32_t from, int32_t also) {
      const SortLine<T> line = {self.data<T>() + from,
                                lines.step[1],
                                values.mutable_data<T>() + to,
                                lines.step[0],
                                indices.mutable_data<int64_t>() + also,
                                lines.step[2],
                                descending};
      if constexpr (kWhole) {
        line.merge(lines.size);
      } else {
        line.run(lines.size, self.dim == 0 ? 1 : count);
      }
    });
    return Error::Ok;
  });
}

}  // namespace orch
