// Kernels of a build in which Float is the only dtype.
#include <vector>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;

TestTensor filled(ScalarType dtype, Sizes sizes) {
  return {dtype, std::move(sizes)};
}

/// Runs every kernel on tensors of one dtype.
std::vector<Error> run_all(ScalarType dtype) {
  const TestTensor matrix = filled(dtype, {1, 1});
  const TestTensor image = filled(dtype, {1, 1, 1, 1});
  const TestTensor number = filled(dtype, {1});
  const TestTensor scalar = filled(dtype, {});
  const TestTensor mask = filled(ScalarType::Bool, {1, 1});
  const TestTensor none = filled(dtype, {0});
  const TestTensor empty = filled(dtype, {0});
  const TestTensor out = filled(dtype, {1, 1});
  const TestTensor image_out = filled(dtype, {1, 1, 1, 1});
  const TestTensor indices = filled(ScalarType::Long, {1, 1, 1, 1});
  std::vector<Error> found;
  const auto run = [&](Call& call, KernelFn kernel) {
    found.push_back(call.run(kernel));
  };
  run(Call().add(matrix).add(matrix).integer(1).add(out), add_out);
  run(Call().add(matrix).add(matrix).add(out), mm_out);
  run(Call().add(matrix).add(matrix).add(matrix).integer(1).integer(1).add(out),
      addmm_out);
  run(Call().add(matrix).integer(0).boolean(false).add(out), _softmax_out);
  run(Call().add(matrix).ints({1, 0}).add(out), permute_copy_out);
  run(Call().add(matrix).add(out), relu_out);
  run(Call().add(matrix).add(out), tanh_out);
  for (const KernelFn kernel :
       {abs_out, neg_out, sin_out, cos_out, sigmoid_out, logical_not_out}) {
    run(Call().add(matrix).add(out), kernel);
  }
  for (const KernelFn kernel : {mul_out, div_out, maximum_out, minimum_out,
                                eq_Tensor_out, ne_Tensor_out, gt_Tensor_out,
                                ge_Tensor_out, lt_Tensor_out, le_Tensor_out}) {
    run(Call().add(matrix).add(matrix).add(out), kernel);
  }
  for (const KernelFn kernel :
       {remainder_Scalar_out, fmod_Scalar_out, eq_Scalar_out, ne_Scalar_out,
        gt_Scalar_out, ge_Scalar_out, lt_Scalar_out, le_Scalar_out}) {
    run(Call().add(matrix).number(0.5).add(out), kernel);
  }
  run(Call().add(matrix).add(matrix).integer(1).add(out), sub_out);
  run(Call().add(matrix).add(matrix).text("floor").add(out), div_out_mode);
  run(Call().add(matrix).add(matrix).none().add(out), div_out_mode);
  run(Call().add(matrix).integer(0).none().add(out), clamp_out);
  run(Call().add(mask).add(matrix).add(matrix).add(out), where_self_out);
  run(Call().ints({1, 1}).integer(0).add(out), full_out);
  run(Call().integer(0).add(scalar), scalar_tensor_out);
  run(Call().integer(0).integer(1).integer(1).add(number), arange_start_out);
  run(Call().add(out).add(matrix).boolean(false), copy_);
  run(Call().add(matrix).boolean(false).none().add(out),
      _to_dim_order_copy_out);
  run(Call().add(matrix).boolean(false).none().add(out), _clone_dim_order_out);
  run(Call()
          .add(image)
          .add(image)
          .none()
          .ints({1, 1})
          .ints({0, 0})
          .ints({1, 1})
          .boolean(false)
          .ints({0, 0})
          .integer(1)
          .add(image_out),
      convolution_out);
  run(Call()
          .add(image)
          .ints({1})
          .ints({})
          .ints({0})
          .ints({1})
          .boolean(false)
          .add(image_out)
          .add(indices),
      max_pool2d_with_indices_out);
  run(Call()
          .add(image)
          .ints({1})
          .ints({})
          .ints({0})
          .boolean(false)
          .boolean(true)
          .none()
          .add(image_out),
      avg_pool2d_out);
  run(Call()
          .add(matrix)
          .none()
          .none()
          .add(number)
          .add(number)
          .number(0)
          .number(1)
          .add(out)
          .add(none)
          .add(empty),
      _native_batch_norm_legit_no_training_out);
  return found;
}

TEST_CASE("what was selected runs") {
  for (const Error error : run_all(ScalarType::Float)) {
    CHECK(error == Error::Ok);
  }
}

TEST_CASE("what was not selected is refused, not computed") {
  for (const ScalarType dtype :
       {ScalarType::Double, ScalarType::Half, ScalarType::BFloat16}) {
    for (const Error error : run_all(dtype)) {
      CHECK(error == Error::DtypeNotSelected);
    }
  }
}

TEST_CASE("mixed dtypes are refused as well") {
  const TestTensor floats = filled(ScalarType::Float, {2});
  const TestTensor ints = filled(ScalarType::Int, {2});
  const TestTensor halves = filled(ScalarType::Half, {2});
  const TestTensor out = filled(ScalarType::Float, {2});
  CHECK(Call().add(floats).add(ints).integer(1).add(out).run(add_out) ==
        Error::DtypeNotSelected);
  CHECK(Call().add(floats).add(ints).add(out).run(mul_out) ==
        Error::DtypeNotSelected);
  CHECK(Call().add(ints).integer(1).add(out).run(gt_Scalar_out) ==
        Error::DtypeNotSelected);
  CHECK(Call().add(ints).boolean(false).none().add(out).run(
            _to_dim_order_copy_out) == Error::DtypeNotSelected);
  CHECK(Call().add(out).add(ints).boolean(false).run(copy_) ==
        Error::DtypeNotSelected);
  CHECK(Call().add(ints).add(out).run(tanh_out) == Error::DtypeNotSelected);
  CHECK(Call().add(floats).add(halves).run(tanh_out) ==
        Error::DtypeNotSelected);
  CHECK(Call().add(halves).integer(0).boolean(true).add(out).run(
            _softmax_out) == Error::DtypeNotSelected);
}

}  // namespace
}  // namespace orch::test
