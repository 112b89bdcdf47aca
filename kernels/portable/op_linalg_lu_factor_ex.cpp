#include "orch_selected/op_linalg_lu_factor_ex.h"

#include "orch/kernel.h"
#include "util/lu.h"

namespace orch::portable {

// aten::linalg_lu_factor_ex.out(Tensor A, *, bool pivot=True,
//   bool check_errors=False, Tensor(a!) LU, Tensor(b!) pivots, Tensor(c!) info)
//   -> (Tensor(a!) LU, Tensor(b!) pivots, Tensor(c!) info)
//
// `info` is the place of the first 0 among the pivots, from 1 on, or 0.
Error linalg_lu_factor_ex_out(const Args& args) {
  const Tensor& a = args.tensor(0);
  Tensor& lu = args.tensor(3);
  Tensor& pivots = args.tensor(4);
  Tensor& info = args.tensor(5);

  ORCH_CHECK(args.boolean(1) && !args.boolean(2), Error::NotSupported);
  ORCH_CHECK(info.dtype == ScalarType::Int, Error::InvalidArgument);
  ORCH_TRY(prepare_factors(a, lu, pivots, info));
  constexpr DtypeSet kDtypes = selected::aten_linalg_lu_factor_ex_out;
  const Strides to(info);
  return factor_all<kDtypes.bits>(
      a, false, lu, pivots,
      [&](int32_t index, auto factors, int32_t diagonal, int) {
        int32_t zero = 0;
        for (int32_t i = diagonal; i-- > 0;) {
          if (factors.at(i, i) == 0) zero = i + 1;
        }
        info.mutable_data<int32_t>()[item_offset(info, to, index)] = zero;
      });
}

}  // namespace orch::portable
