// One variant of the int8 kernels: ORCH_ISA and `cortex_m`, the name of their
// namespace, are macros. RUN is the function's name.
#include "kernel_variant.h"

#include "cortex_m/convolve.cpp"
#include "cortex_m/convolve_mve.cpp"
#include "cortex_m/depthwise.cpp"
#include "cortex_m/depthwise_mve.cpp"
#include "cortex_m/tile_dsp.cpp"
#include "cortex_m/tile_mve.cpp"

using namespace orch;
using namespace orch::cortex_m;

namespace {

Output output_of(const Problem& problem) {
  return {problem.multipliers,
          problem.shifts,
          problem.step,
          problem.offset,
          {problem.low, problem.high}};
}

template <typename T>
int32_t set_axes(const Problem& problem, T& conv) {
  conv.in = {problem.batch, problem.height, problem.width, problem.channels};
  Axis* const axes[2] = {&conv.rows, &conv.columns};
  const int32_t sizes[2] = {problem.height, problem.width};
  for (int i = 0; i < 2; ++i) {
    *axes[i] = {sizes[i],           0,
                problem.kernel[i],  problem.stride[i],
                problem.padding[i], problem.dilation[i]};
    if (set_output(*axes[i]) != Error::Ok) return -1;
  }
  conv.out = {problem.batch, conv.rows.out, conv.columns.out, problem.outputs};
  conv.x_offset = problem.x_offset;
  conv.x = problem.x;
  conv.w = problem.w;
  conv.bias = problem.bias;
  conv.to = output_of(problem);
  return problem.batch * conv.rows.out * conv.columns.out * problem.outputs;
}

}  // namespace

int32_t RUN(const Problem& problem, int8_t* y) {
  if (problem.kind == ProblemKind::kDepthwise) {
    Convolution conv;
    const int32_t items = set_axes(problem, conv);
    if (items < 0) return items;
    conv.multiplier = problem.outputs / problem.channels;
    conv.y = y;
    convolve_depthwise(conv);
    return items;
  }
  Convolution conv;
  const int32_t items = set_axes(problem, conv);
  if (items < 0) return items;
  conv.group_channels = problem.channels / problem.groups;
  conv.group_outputs = problem.outputs / problem.groups;
  conv.w_offset = problem.w_offset;
  conv.y = y;
  if (problem.kind == ProblemKind::kConvolution) {
    convolve(conv);
    return items;
  }
  multiply(conv, problem.batch, problem.channels, problem.outputs);
  return problem.batch * problem.outputs;
}
