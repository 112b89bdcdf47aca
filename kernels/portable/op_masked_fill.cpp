#include "orch_selected/op_masked_fill.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/fill.h"

namespace orch::portable {

// aten::masked_fill.Scalar_out(Tensor self, Tensor mask, Scalar value, *,
//   Tensor(a!) out) -> Tensor(a!)
Error masked_fill_Scalar_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& mask = args.tensor(1);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(self.dtype == out.dtype && mask.dtype == ScalarType::Bool,
             Error::InvalidArgument);
  ORCH_TRY(resize_broadcast(out, self, mask));
  constexpr DtypeSet kDtypes = selected::aten_masked_fill_Scalar_out;
  uint64_t bits;
  ORCH_TRY(item_bits<kDtypes.bits>(out.dtype, args.scalar(2), bits));
  StridedLoop loop = loop_over(out, self, mask);
  return switch_item<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T value;
    memcpy(&value, &bits, sizeof value);
    for (; loop.valid(); loop.next()) {
      T* to = out.mutable_data<T>() + loop.offset(0);
      const T* from = self.data<T>() + loop.offset(1);
      const uint8_t* masked = mask.data<uint8_t>() + loop.offset(2);
      int32_t left = loop.row_size();
      do {
        *to = *masked != 0 ? value : *from;
        to += loop.row_stride(0);
        from += loop.row_stride(1);
        masked += loop.row_stride(2);
      } while (--left != 0);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
