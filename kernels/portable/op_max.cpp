#include "orch_selected/op_max.h"

#include "orch/kernel.h"
#include "util/extreme.h"
#include "util/reduce.h"

namespace orch::portable {

// aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *,
//   Tensor(a!) max, Tensor(b!) max_values)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error max_dim_max(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool keepdim = args.boolean(2);
  Tensor& values = args.tensor(3);
  Tensor& indices = args.tensor(4);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_CHECK(values.dtype == self.dtype && indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  ORCH_CHECK(self.dim == 0 || self.size(dim) > 0, Error::InvalidArgument);
  Reduction reduction;
  ORCH_TRY(prepare_reduction(self, 1U << dim, keepdim, values, reduction));
  ORCH_TRY(resize_output(indices, values.sizes(), self));
  // Items of the two outputs then lie at the same offsets.
  ORCH_CHECK(same_layout(values, indices), Error::NotSupported);
  constexpr DtypeSet kDtypes = selected::aten_max_dim_max;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    StridedLoop& kept = reduction.kept;
    StridedLoop& items = reduction.items;
    const int32_t step = items.row_stride(0);  // one dimension is one row
    for (; kept.valid(); kept.next()) {
      for (int32_t i = 0; i < kept.row_size(); ++i) {
        const int32_t to = kept.offset(0) + i * kept.row_stride(0);
        const T* from =
            self.data<T>() + kept.offset(1) + i * kept.row_stride(1);
        const int32_t index = index_of_largest(from, items);
        items.restart();
        values.mutable_data<T>()[to] = from[index * step];
        indices.mutable_data<int64_t>()[to] = index;
      }
    }
    return Error::Ok;
  });
}

// aten::max.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error max_unary_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_max_unary_out_of_self;
  constexpr DtypeSet kOut = selected::aten_max_unary_out_of_out;
  return extreme_item<kIn.bits, kOut.bits>(
      args, [](auto type) { return lowest<typename decltype(type)::type>(); },
      [](auto a, auto b) { return a > b; });
}

}  // namespace orch::portable
