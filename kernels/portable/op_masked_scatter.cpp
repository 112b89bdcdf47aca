#include "orch_selected/op_masked_scatter.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/mask.h"

namespace orch::portable {

// aten::masked_scatter.out(Tensor self, Tensor mask, Tensor source, *,
//   Tensor(a!) out) -> Tensor(a!)
Error masked_scatter_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& mask = args.tensor(1);
  const Tensor& source = args.tensor(2);
  Tensor& out = args.tensor(3);

  constexpr DtypeSet kDtypes = selected::aten_masked_scatter_out;
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  ORCH_CHECK(self.dtype == out.dtype && source.dtype == out.dtype &&
                 mask.dtype == ScalarType::Bool,
             Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  ORCH_TRY(masked_sizes(self, mask, sizes));
  ORCH_CHECK_DATA(
      count_true(loop_over_mask(mask, self, nullptr), mask) <= source.numel(),
      Error::InvalidArgument);
  const size_t rank = mask.dim > self.dim ? mask.dim : self.dim;
  ORCH_TRY(resize_output(out, {sizes, rank}, self, mask, source));
  StridedLoop loop = loop_over_mask(mask, self, &out);
  StridedLoop rows;  // of the source, by index
  const Strides at_source(source);
  for (int d = 0; d < source.dim; ++d)
    rows.add(source.size(d), at_source[d], 0);
  return switch_item<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    int32_t taken = 0;  // of the row
    for (; loop.valid(); loop.next()) {
      const T* const from = self.data<T>() + loop.offset(1);
      T* const to = out.mutable_data<T>() + loop.offset(2);
      const uint8_t* const chosen = mask.data<uint8_t>() + loop.offset(0);
      const int32_t from_step = loop.row_stride(1);
      const int32_t to_step = loop.row_stride(2);
      const int32_t mask_step = loop.row_stride(0);
      for (int32_t i = 0, size = loop.row_size(); i < size; ++i) {
        const T* item = from + i * from_step;
        if (chosen[i * mask_step] != 0) {
          // Where memories overlap, the mask may change.
          ORCH_CHECK_DATA(rows.valid(), Error::InvalidArgument);
          item = source.data<T>() + rows.offset(0) + taken * rows.row_stride(0);
          if (++taken == rows.row_size()) {
            taken = 0;
            rows.next();
          }
        }
        to[i * to_step] = *item;
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
