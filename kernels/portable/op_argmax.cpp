#include "orch_selected/op_argmax.h"

#include "orch/kernel.h"
#include "util/reduce.h"

namespace orch::portable {

// aten::argmax.out(Tensor self, int? dim=None, bool keepdim=False, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// Without `dim`, the index into the flattened tensor.
Error argmax_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool keepdim = args.boolean(2);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(out.dtype == ScalarType::Long, Error::InvalidArgument);
  unsigned dims = (1U << self.dim) - 1;
  if (args.has(1)) {
    int dim = 0;
    ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
    dims &= 1U << dim;
  }
  for (int i = 0; i < self.dim; ++i) {
    ORCH_CHECK(((dims >> i) & 1U) == 0 || self.size(i) > 0,
               Error::InvalidArgument);
  }
  Reduction reduction;
  ORCH_TRY(prepare_reduction(self, dims, keepdim, out, reduction));
  constexpr DtypeSet kDtypes = selected::aten_argmax_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    StridedLoop& kept = reduction.kept;
    for (; kept.valid(); kept.next()) {
      for (int32_t i = 0; i < kept.row_size(); ++i) {
        const T* items =
            self.data<T>() + kept.offset(1) + i * kept.row_stride(1);
        out.mutable_data<int64_t>()[kept.offset(0) + i * kept.row_stride(0)] =
            index_of_largest(items, reduction.items);
        reduction.items.restart();
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
