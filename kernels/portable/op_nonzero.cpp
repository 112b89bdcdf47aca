#include "orch_selected/op_nonzero.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/strided_loop.h"

namespace orch::portable {
namespace {

/// Whether an item, as bits, is not 0; floats have no sign here.
template <typename T>
bool is_nonzero(T bits, bool floating) {
  return static_cast<T>(floating ? bits << 1 : bits) != 0;
}

}  // namespace

// aten::nonzero.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//
// The indices of the items that are not 0, a row for each.
Error nonzero_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  constexpr DtypeSet kDtypes = selected::aten_nonzero_out;
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  ORCH_CHECK(out.dtype == ScalarType::Long, Error::InvalidArgument);
  const bool floating = kFloating.has(self.dtype);
  return switch_item<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const int32_t items = self.numel();
    int32_t count = 0;
    for (int32_t i = 0; i < items; ++i) {
      count += is_nonzero(self.data<T>()[i], floating) ? 1 : 0;
    }
    const int32_t sizes[] = {count, self.dim};
    ORCH_TRY_DATA(resize_counted(out, sizes, self));
    const Strides from(self);
    const Strides to(out);
    int64_t* found = out.mutable_data<int64_t>();
    // A line along the last dimension at a time.
    const int last = self.dim == 0 ? 0 : self.dim - 1;
    const int32_t size = self.dim == 0 ? 1 : self.size(last);
    const int32_t step = self.dim == 0 ? 0 : from[last];
    int32_t index[kMaxDim] = {};
    int32_t at = 0;
    int32_t row = 0;
    for (int32_t i = 0; i < items; i += size) {
      for (int32_t j = 0; j < size; ++j) {
        if (!is_nonzero(self.data<T>()[at + j * step], floating)) continue;
        // Where memories overlap, items may change.
        ORCH_CHECK_DATA(row < count, Error::InvalidArgument);
        ++row;
        index[last] = j;
        int64_t* item = found;
        for (int d = 0; d < self.dim; ++d, item += to[1]) *item = index[d];
        found += to[0];
      }
      for (int d = last; d-- > 0;) {
        at += from[d];
        if (++index[d] < self.size(d)) break;
        at -= index[d] * from[d];
        index[d] = 0;
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
