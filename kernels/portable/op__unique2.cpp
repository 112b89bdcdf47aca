#include "orch_selected/op__unique2.h"

#include "orch/kernel.h"
#include "util/distinct.h"
#include "util/isa.h"

namespace orch::portable {
namespace {

/// The smallest of all items that are above `last`, and how often it is there;
/// 0 if there is none. NaN is not among them. `first`: whether there is no
/// `last`.
template <typename T>
ORCH_HOT int32_t find_next(const T* items, int32_t size, bool first, T last,
                           T& found) {
  int32_t times = 0;
  const auto low = number_of(last);
  for (int32_t i = 0; i < size; ++i) {
    const auto item = number_of(items[i]);
    if (is_nan(item) || (!first && item <= low)) continue;
    if (times != 0 && item == number_of(found)) {
      ++times;
    } else if (times == 0 || item < number_of(found)) {
      found = items[i];
      times = 1;
    }
  }
  return times;
}

/// Which of the sorted items equals a number: 0 if none does.
template <typename T>
int32_t find_place(const T* sorted, int32_t count, T item) {
  int32_t low = 0;
  while (count > 1) {
    const int32_t half = count / 2;
    if (number_of(sorted[low + half]) <= number_of(item)) low += half;
    count -= half;
  }
  return low;
}

/// Different numbers, ascending, then every NaN. Sorting would take memory:
/// each number is searched among all items.
template <typename T>
Error find_distinct(const Distinct& distinct) {
  const Tensor& self = distinct.self;
  const T* const from = self.data<T>();
  const int32_t size = self.numel();
  int32_t count = 0;
  for (int32_t i = 0; i < size; ++i) {
    count += is_nan(number_of(from[i])) ? 1 : 0;
  }
  T item{};
  int32_t numbers = 0;
  while (find_next(from, size, numbers == 0, item, item) != 0) ++numbers;
  count += numbers;
  ORCH_TRY_DATA(distinct.resize(count));
  T* const items = distinct.items.mutable_data<T>();
  int64_t* const counts = distinct.counts.mutable_data<int64_t>();
  for (int32_t i = 0; i < numbers; ++i) {
    const int32_t times = find_next(from, size, i == 0, item, item);
    items[i] = item;
    if (distinct.has_counts) counts[i] = times;
  }
  const Strides own(self);
  const Strides to(distinct.inverse);
  int32_t next = numbers;  // of NaN
  for (int32_t i = 0; i < size; ++i) {
    const T value = from[item_offset(self, own, i)];
    int32_t place = 0;
    if (is_nan(number_of(value))) {
      // Where memories overlap, items may change.
      ORCH_CHECK_DATA(next < count, Error::InvalidArgument);
      place = next++;
      items[place] = value;
      if (distinct.has_counts) counts[place] = 1;
    } else {
      place = find_place(items, numbers, value);
    }
    if (distinct.has_inverse) {
      distinct.inverse
          .mutable_data<int64_t>()[item_offset(distinct.inverse, to, i)] =
          place;
    }
  }
  return Error::Ok;
}

}  // namespace

// aten::_unique2.out(Tensor self, bool sorted=True, bool return_inverse=False,
//   bool return_counts=False, *, Tensor(a!) out0, Tensor(b!) out1,
//   Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))
//
// Always sorted.
Error _unique2_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Distinct distinct = {self,           args.boolean(2), args.boolean(3),
                             args.tensor(4), args.tensor(5),  args.tensor(6)};
  ORCH_TRY(distinct.check());
  constexpr DtypeSet kDtypes = selected::aten__unique2_out;
  ORCH_TRY_DATA(switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    return find_distinct<typename decltype(type)::type>(distinct);
  }));
  return Error::Ok;
}

}  // namespace orch::portable
