#include "orch_selected/op_masked_select.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/mask.h"

namespace orch::portable {

// aten::masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out)
//   -> Tensor(a!)
Error masked_select_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& mask = args.tensor(1);
  Tensor& out = args.tensor(2);

  constexpr DtypeSet kDtypes = selected::aten_masked_select_out;
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  ORCH_CHECK(self.dtype == out.dtype && mask.dtype == ScalarType::Bool,
             Error::InvalidArgument);
  int32_t broadcast[kMaxDim];
  ORCH_TRY(masked_sizes(self, mask, broadcast));
  StridedLoop loop = loop_over_mask(mask, self, nullptr);
  const int32_t count = count_true(loop, mask);
  const int32_t sizes[] = {count};
  ORCH_TRY_DATA(resize_counted(out, sizes, self, mask));
  return switch_item<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = out.mutable_data<T>();
    // Where memories overlap, the mask may change.
    int32_t left = count;
    for (; loop.valid(); loop.next()) {
      const T* const from = self.data<T>() + loop.offset(1);
      const uint8_t* const chosen = mask.data<uint8_t>() + loop.offset(0);
      const int32_t from_step = loop.row_stride(1);
      const int32_t mask_step = loop.row_stride(0);
      for (int32_t i = 0, size = loop.row_size(); i < size; ++i) {
        if (chosen[i * mask_step] == 0) continue;
        ORCH_CHECK_DATA(left-- > 0, Error::InvalidArgument);
        *to++ = from[i * from_step];
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
