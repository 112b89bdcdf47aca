#include "orch_selected/op_choose_qparams_per_token_asymmetric.h"

#include "orch/kernel.h"
#include "util/choose_affine.h"
#include "util/strided_loop.h"

namespace orch::quantized {

// quantized_decomposed::choose_qparams_per_token_asymmetric.out(Tensor input,
//   ScalarType dtype, *, Tensor(a!) scale_out, Tensor(b!) zero_point_out)
//   -> (Tensor(a!), Tensor(b!))
Error choose_qparams_per_token_asymmetric_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& scale_out = args.tensor(2);
  Tensor& zero_point_out = args.tensor(3);

  // The limits are those of Char, whatever argument 1 says.
  ORCH_CHECK(input.dtype == ScalarType::Float &&
                 scale_out.dtype == ScalarType::Double &&
                 zero_point_out.dtype == ScalarType::Long,
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes =
      selected::quantized_decomposed_choose_qparams_per_token_asymmetric_out;
  if constexpr (kDtypes.has(ScalarType::Float)) {
    ORCH_CHECK(input.dim > 0, Error::InvalidArgument);
    const int last = input.dim - 1;
    const int32_t items = input.size(last);
    ORCH_CHECK(items > 0, Error::InvalidArgument);
    ORCH_CHECK_DATA(all_finite(input), Error::InvalidArgument);
    int32_t sizes[kMaxDim];
    for (int i = 0; i < last; ++i) sizes[i] = input.size(i);
    sizes[last] = 1;
    ORCH_TRY(resize_output(scale_out, {sizes, input.dim}, input));
    ORCH_TRY(resize_output(zero_point_out, {sizes, input.dim}, input));
    const Strides strides(input);
    const Strides scale_strides(scale_out);
    const Strides zero_point_strides(zero_point_out);
    StridedLoop tokens;
    for (int i = 0; i < last; ++i) {
      tokens.add(sizes[i], scale_strides[i], strides[i], zero_point_strides[i]);
    }
    for (; tokens.valid(); tokens.next()) {
      for (int32_t i = 0; i < tokens.row_size(); ++i) {
        const float* from =
            input.data<float>() + tokens.offset(1) + i * tokens.row_stride(1);
        int32_t zero_point;
        choose_affine(
            Range(from, items, strides[last]), INT8_MIN, INT8_MAX,
            scale_out.mutable_data<double>()[tokens.offset(0) +
                                             i * tokens.row_stride(0)],
            zero_point);
        zero_point_out.mutable_data<int64_t>()[tokens.offset(2) +
                                               i * tokens.row_stride(2)] =
            zero_point;
      }
    }
    return Error::Ok;
  }
  return Error::DtypeNotSelected;
}

}  // namespace orch::quantized
