#include "orch_selected/op_choose_qparams.h"

#include "orch/kernel.h"
#include "util/choose_affine.h"

namespace orch::quantized {

// quantized_decomposed::choose_qparams.Tensor_out(Tensor input, int quant_min,
//   int quant_max, float eps, ScalarType dtype, *, Tensor(a!) scale_out,
//   Tensor(b!) zero_point_out) -> (Tensor(a!), Tensor(b!))
Error choose_qparams_Tensor_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& scale_out = args.tensor(5);
  Tensor& zero_point_out = args.tensor(6);

  ORCH_CHECK(input.dtype == ScalarType::Float &&
                 scale_out.dtype == ScalarType::Double &&
                 zero_point_out.dtype == ScalarType::Long,
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes =
      selected::quantized_decomposed_choose_qparams_Tensor_out;
  if constexpr (kDtypes.has(ScalarType::Float)) {
    const int64_t low = args.integer(1);
    const int64_t high = args.integer(2);
    ORCH_CHECK(low >= INT32_MIN && low < high && high <= INT32_MAX,
               Error::InvalidArgument);
    ORCH_CHECK(input.numel() > 0, Error::InvalidArgument);
    const Range range(input.data<float>(), input.numel(), 1);
    ORCH_CHECK_DATA(range.is_finite(), Error::InvalidArgument);
    ORCH_CHECK(scale_out.numel() == 1 && zero_point_out.numel() == 1,
               Error::InvalidArgument);
    int32_t zero_point;
    choose_affine(range, static_cast<int32_t>(low), static_cast<int32_t>(high),
                  *scale_out.mutable_data<double>(), zero_point);
    *zero_point_out.mutable_data<int64_t>() = zero_point;
    return Error::Ok;
  }
  return Error::DtypeNotSelected;
}

}  // namespace orch::quantized
