#include "orch_selected/op_var.h"

#include "orch/kernel.h"
#include "util/reduce.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

/// The sum of (item - center)^kPower over a loop; tensor 0 is at `items`.
template <int kPower, typename T>
Compute<T> sum_powers(const T* items, StridedLoop& loop, Compute<T> center) {
  using C = Compute<T>;
  C sum = 0;
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      const C value =
          static_cast<C>(items[loop.offset(0) + i * loop.row_stride(0)]) -
          center;
      sum += kPower == 2 ? value * value : value;
    }
  }
  return sum;
}

}  // namespace

// aten::var.correction_out(Tensor self, int[1]? dim=None, *,
//   Scalar? correction=None, bool keepdim=False, Tensor(a!) out) -> Tensor(a!)
//
// Computed in the dtype of `self`; without `correction`, 1 is taken off the
// number of items.
Error var_correction_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool keepdim = args.boolean(3);
  Tensor& out = args.tensor(4);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  unsigned dims = 0;
  Reduction reduction;
  ORCH_TRY(read_reduced_dims(args, 1, self, dims));
  ORCH_TRY(prepare_reduction(self, dims, keepdim, out, reduction));
  constexpr DtypeSet kDtypes = selected::aten_var_correction_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const C count = static_cast<C>(reduction.count);
    C divisor = count - (args.has(2) ? scalar_as<T>(args.scalar(2)) : C(1));
    if (divisor < 0) divisor = 0;
    StridedLoop& kept = reduction.kept;
    StridedLoop& items = reduction.items;
    for (; kept.valid(); kept.next()) {
      for (int32_t i = 0; i < kept.row_size(); ++i) {
        const T* from =
            self.data<T>() + kept.offset(1) + i * kept.row_stride(1);
        const C mean = sum_powers<1, T>(from, items, 0) / count;
        if (reduction.count != 0) items.restart();
        const C sum = sum_powers<2, T>(from, items, mean);
        if (reduction.count != 0) items.restart();
        out.mutable_data<T>()[kept.offset(0) + i * kept.row_stride(0)] =
            static_cast<T>(sum / divisor);
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
