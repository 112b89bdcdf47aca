#include "orch_selected/op__linalg_det.h"

#include "orch/kernel.h"
#include "util/lu.h"

namespace orch::portable {

// aten::_linalg_det.result(Tensor A, *, Tensor(a!) result, Tensor(b!) LU,
//   Tensor(c!) pivots) -> (Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots)
//
// The factors are those of the transposed matrix, as PyTorch has them of one
// that is contiguous.
Error _linalg_det_result(const Args& args) {
  const Tensor& a = args.tensor(0);
  Tensor& result = args.tensor(1);
  Tensor& lu = args.tensor(2);
  Tensor& pivots = args.tensor(3);

  ORCH_CHECK(result.dtype == a.dtype && a.dim >= 2 &&
                 a.size(a.dim - 1) == a.size(a.dim - 2),
             Error::InvalidArgument);
  ORCH_TRY(prepare_factors(a, lu, pivots, result));
  constexpr DtypeSet kDtypes = selected::aten__linalg_det_result;
  const Strides to(result);
  return factor_all<kDtypes.bits>(
      a, true, lu, pivots,
      [&](int32_t index, auto factors, int32_t n, int sign) {
        using T = typename decltype(factors)::Item;
        T product = static_cast<T>(sign);
        for (int32_t i = 0; i < n; ++i) product *= factors.at(i, i);
        result.mutable_data<T>()[item_offset(result, to, index)] = product;
      });
}

}  // namespace orch::portable
