#include "orch_selected/op_histc.h"

#include "orch/kernel.h"
#include "util/bins.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

/// Adds 1 to the bin of each item between two ends; a step of one bin includes
/// its lower edge, the last one both. Each count is rounded to T.
template <typename T>
void count_items(const T* items, int32_t size, const EvenBins<T>& bins,
                 T* counts) {
  for (int32_t i = 0; i < size; ++i) {
    const auto item = number_of(items[i]);
    if (!bins.has(item)) continue;
    int32_t bin = bins.find(item);
    if (bin == bins.count) --bin;
    counts[bin] = static_cast<T>(number_of(counts[bin]) + 1);
  }
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
    const EvenBins<T> even = {number_of(low), number_of(high), bins};
    count_items(self.data<T>(), items, even, counts);
    return Error::Ok;
  });
}

}  // namespace orch::portable
