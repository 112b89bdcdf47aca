#include "orch_selected/op_mixed_mm.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"

namespace orch::quantized {
namespace {

template <typename T>
void multiply(const Tensor& input, const Tensor& weight, const Tensor& scales,
              Tensor& out) {
  const Strides x(input);
  const Strides w(weight);
  const Strides to(out);
  const int32_t terms = weight.size(0);
  for (int32_t i = 0; i < out.size(0); ++i) {
    for (int32_t j = 0; j < out.size(1); ++j) {
      const T* item = input.data<T>() + i * x[0];
      const int8_t* factor = weight.data<int8_t>() + j * w[1];
      const T* scale = scales.data<T>();
      float sum = 0;
      for (int32_t k = terms; k != 0; --k) {
        sum += static_cast<float>(*item) * static_cast<float>(*factor) *
               static_cast<float>(*scale++);
        item += x[1];
        factor += w[0];
      }
      out.mutable_data<T>()[i * to[0] + j * to[1]] = static_cast<T>(sum);
    }
  }
}

}  // namespace

// quantized_decomposed::mixed_mm.out(Tensor input, Tensor weight,
//   Tensor weight_scales, Tensor? weight_zero_points, *, Tensor(a!) out)
//   -> Tensor(a!)
//
// Each row of the weights has a scale.
Error mixed_mm_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor& scales = args.tensor(2);
  Tensor& out = args.tensor(4);

  ORCH_CHECK(!args.has(3), Error::NotSupported);
  ORCH_CHECK(weight.dtype == ScalarType::Char && input.dtype == out.dtype &&
                 scales.dtype == out.dtype,
             Error::InvalidArgument);
  ORCH_CHECK(input.dim == 2 && weight.dim == 2 && scales.dim == 1 &&
                 input.size(1) == weight.size(0) &&
                 scales.size(0) == weight.size(0),
             Error::InvalidArgument);
  const int32_t sizes[] = {input.size(0), weight.size(1)};
  ORCH_TRY(resize_output(out, sizes, input, weight, scales));
  constexpr DtypeSet kDtypes = selected::quantized_decomposed_mixed_mm_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (kIsSame<T, float> || kIsHalf<T>) {
      multiply<T>(input, weight, scales, out);
      return Error::Ok;
    } else {
      return Error::DtypeNotSelected;
    }
  });
}

}  // namespace orch::quantized
