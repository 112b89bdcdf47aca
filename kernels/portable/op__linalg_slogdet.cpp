#include "orch_selected/op__linalg_slogdet.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/lu.h"

namespace orch::portable {

// aten::_linalg_slogdet.sign(Tensor A, *, Tensor(a!) sign,
//   Tensor(b!) logabsdet, Tensor(c!) LU, Tensor(d!) pivots)
//   -> (Tensor(a!) sign, Tensor(b!) logabsdet, Tensor(c!) LU,
//   Tensor(d!) pivots)
//
// The factors are those of the transposed matrix, as PyTorch has them of one
// that is contiguous.
Error _linalg_slogdet_sign(const Args& args) {
  const Tensor& a = args.tensor(0);
  Tensor& signs = args.tensor(1);
  Tensor& logarithms = args.tensor(2);
  Tensor& lu = args.tensor(3);
  Tensor& pivots = args.tensor(4);

  ORCH_CHECK(signs.dtype == a.dtype && logarithms.dtype == a.dtype &&
                 a.dim >= 2 && a.size(a.dim - 1) == a.size(a.dim - 2),
             Error::InvalidArgument);
  ORCH_TRY(prepare_factors(a, lu, pivots, signs, logarithms));
  constexpr DtypeSet kDtypes = selected::aten__linalg_slogdet_sign;
  const Strides to_sign(signs);
  const Strides to_logarithm(logarithms);
  return factor_all<kDtypes.bits>(
      a, true, lu, pivots,
      [&](int32_t index, auto factors, int32_t n, int swaps) {
        using T = typename decltype(factors)::Item;
        T sign = static_cast<T>(swaps);
        T sum = 0;
        for (int32_t i = 0; i < n; ++i) {
          const T item = factors.at(i, i);
          const T size = item < 0 ? -item : item;
          // 0 for 0 and NaN.
          sign = size > 0 ? (item < 0 ? -sign : sign) : T(0);
          sum += math::log(size);
        }
        signs.mutable_data<T>()[item_offset(signs, to_sign, index)] = sign;
        logarithms
            .mutable_data<T>()[item_offset(logarithms, to_logarithm, index)] =
            sum;
      });
}

}  // namespace orch::portable
