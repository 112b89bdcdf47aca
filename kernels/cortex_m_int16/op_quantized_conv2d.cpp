#include "convolve.h"
#include "orch/kernel.h"

namespace orch::cortex_m_int16 {

// cortex_m::quantized_conv2d.out(Tensor input, Tensor weight, Tensor? bias,
//   int[] stride, int[] padding, int[] dilation, int input_offset,
//   int output_offset, Tensor requantize_multipliers, Tensor requantize_shifts,
//   int activation_min, int activation_max, Tensor scratch, *, Tensor(a!) out)
//   -> Tensor(a!)
Error quantized_conv2d_out(const Args& args) {
  Convolution conv;
  ORCH_TRY(prepare(args, Kind::kConvolution, conv));
  convolve(conv);
  return Error::Ok;
}

}  // namespace orch::cortex_m_int16
