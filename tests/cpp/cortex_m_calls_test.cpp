// Every call of tests/data/cortex_m/calls.bin, made by the semantics that NumPy
// computes there. The same calls run on boards:
// tests/qemu/test_kernel_calls.py.
//
// ORCH_CORTEX_M names the file.
#include <cstdlib>
#include <map>
#include <string>

#include "support/kernels.h"
#include "support/reference.h"

namespace orch::test {
namespace {

struct Operator {
  KernelFn kernel;
  int calls;
};

std::map<std::string, Operator> operators() {
  using namespace cortex_m;
  return {
      {"cortex_m::dequantize_per_tensor.out", {dequantize_per_tensor_out, 0}},
      {"cortex_m::maximum.out", {maximum_out, 0}},
      {"cortex_m::minimum.out", {minimum_out, 0}},
      {"cortex_m::pad.out", {pad_out, 0}},
      {"cortex_m::quantize_per_tensor.out", {quantize_per_tensor_out, 0}},
      {"cortex_m::quantized_activation.out", {quantized_activation_out, 0}},
      {"cortex_m::quantized_add.out", {quantized_add_out, 0}},
      {"cortex_m::quantized_avg_pool2d.out", {quantized_avg_pool2d_out, 0}},
      {"cortex_m::quantized_avg_pool2d_nhwc.out",
       {quantized_avg_pool2d_nhwc_out, 0}},
      {"cortex_m::quantized_batch_matmul.out", {quantized_batch_matmul_out, 0}},
      {"cortex_m::quantized_conv2d.out", {quantized_conv2d_out, 0}},
      {"cortex_m::quantized_conv2d_nhwc.out", {quantized_conv2d_nhwc_out, 0}},
      {"cortex_m::quantized_depthwise_conv2d.out",
       {quantized_depthwise_conv2d_out, 0}},
      {"cortex_m::quantized_depthwise_conv2d_nhwc.out",
       {quantized_depthwise_conv2d_nhwc_out, 0}},
      {"cortex_m::quantized_div.out", {quantized_div_out, 0}},
      {"cortex_m::quantized_linear.out", {quantized_linear_out, 0}},
      {"cortex_m::quantized_max_pool2d.out", {quantized_max_pool2d_out, 0}},
      {"cortex_m::quantized_max_pool2d_nhwc.out",
       {quantized_max_pool2d_nhwc_out, 0}},
      {"cortex_m::quantized_mul.out", {quantized_mul_out, 0}},
      {"cortex_m::quantized_transpose_conv2d.out",
       {quantized_transpose_conv2d_out, 0}},
      {"cortex_m::quantized_transpose_conv2d_nhwc.out",
       {quantized_transpose_conv2d_nhwc_out, 0}},
      {"cortex_m::softmax.out", {softmax_out, 0}},
      {"cortex_m::transpose.out", {transpose_out, 0}},
  };
}

TEST_CASE("int8 kernels give what their semantics say") {
  const char* const path = std::getenv("ORCH_CORTEX_M");
  REQUIRE_MESSAGE(path != nullptr, "ORCH_CORTEX_M is not set");
  ReferenceReader reader(path);
  std::map<std::string, Operator> table = operators();
  for (uint32_t number = 0; reader.left() > 0; ++number) {
    ReferenceCall call = reader.next();
    REQUIRE(table.count(call.name) == 1);
    ++table[call.name].calls;
    CAPTURE(number);
    CAPTURE(call.name);
    REQUIRE(call.run(table[call.name].kernel) == Error::Ok);
    Worst worst;
    CHECK(call.difference(0, worst) == "");
  }
  CHECK(reader.at_end());
  for (const auto& [name, entry] : table) {
    CAPTURE(name);
    CHECK(entry.calls > 0);
  }
}

}  // namespace
}  // namespace orch::test
