#include "orch_selected/op_histc.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

/// Adds 1 to the bin of each item between `low` and `high`; a step of one bin
/// includes its lower edge, the last one both. Each operation is rounded to T,
/// and so is each count.
template <typename T>
void count_items(const T* items, int32_t size, T low, T high, int32_t bins,
                 T* counts) {
  const auto first = number_of(low);
  const auto last = number_of(high);
  const auto rounded = [](auto number) {
    return number_of(static_cast<T>(number));
  };
  const auto width = rounded(last - first);
  const auto factor = rounded(from_int<Compute<T>>(bins));
  for (int32_t i = 0; i < size; ++i) {
    const auto item = number_of(items[i]);
    if (!(item >= first && item <= last)) continue;  // nor NaN
    const auto place = rounded(rounded(rounded(item - first) * factor) / width);
    // The highest item is in the last bin. A range that is too wide or too
    // narrow for T gives infinity or NaN.
    int32_t bin = 0;
    if (place >= factor) {
      bin = bins - 1;
    } else if (place > 0) {
      bin = static_cast<int32_t>(place);
    }
    if (bin >= bins) bin = bins - 1;
    counts[bin] = static_cast<T>(number_of(counts[bin]) + 1);
  }
}

/// The least and the largest item. Errors: InvalidArgument (one is infinite or
/// NaN).
template <typename T>
Error find_range(const T* items, int32_t size, T& low, T& high) {
  low = items[0];
  high = items[0];
  for (int32_t i = 0; i < size; ++i) {
    const auto item = number_of(items[i]);
    ORCH_CHECK_DATA(item - item == 0, Error::InvalidArgument);
    if (item < number_of(low)) low = items[i];
    if (item > number_of(high)) high = items[i];
  }
  return Error::Ok;
}

}  // namespace

// aten::histc.out(Tensor self, int bins=100, Scalar min=0, Scalar max=0, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// Where min and max are equal the range is that of the items; one of no width
// is made wider by 1 on both sides.
Error histc_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(4);

  int32_t bins = 0;
  ORCH_TRY(read_int(args.integer(1), 1, bins));
  const double least = args.number(2);
  const double most = args.number(3);
  ORCH_CHECK(least - least == 0 && most - most == 0 && least <= most,
             Error::InvalidArgument);
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  const int32_t sizes[] = {bins};
  const int32_t items = self.numel();
  constexpr DtypeSet kDtypes = selected::aten_histc_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) -> Error {
    using T = typename decltype(type)::type;
    T low = scalar_to<T>(args.scalar(2));
    T high = scalar_to<T>(args.scalar(3));
    if (least == most) {
      if (items != 0) {
        ORCH_TRY_DATA(find_range(self.data<T>(), items, low, high));
      }
      if (number_of(low) == number_of(high)) {
        low = static_cast<T>(number_of(low) - 1);
        high = static_cast<T>(number_of(high) + 1);
      }
    }
    ORCH_TRY(resize_output(out, sizes, self));
    T* const counts = out.mutable_data<T>();
    for (int32_t i = 0; i < bins; ++i) counts[i] = static_cast<T>(0.0F);
    count_items(self.data<T>(), items, low, high, bins, counts);
    return Error::Ok;
  });
}

}  // namespace orch::portable
