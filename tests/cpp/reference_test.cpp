// Every call of tests/data/kernels/reference.bin, made by PyTorch
// and ExecuTorch.
//
// ORCH_REFERENCE names the file. ORCH_REPORT=1 prints the largest error of each
// operator and dtype: in units of the last place of the result, which is much
// where a sum cancels out, and as a share of the tolerance.
#include "support/reference.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "support/kernels.h"

namespace orch::test {
namespace {

struct Operator {
  KernelFn kernel;
  int calls;
};

std::map<std::string, Operator> operators() {
  using namespace portable;
  using namespace quantized;
  return {
      {"aten::_native_batch_norm_legit_no_training.out",
       {_native_batch_norm_legit_no_training_out, 0}},
      {"aten::_softmax.out", {_softmax_out, 0}},
      {"aten::abs.out", {abs_out, 0}},
      {"aten::add.out", {add_out, 0}},
      {"aten::addmm.out", {addmm_out, 0}},
      {"aten::any.all_out", {any_all_out, 0}},
      {"aten::any.dims_out", {any_dims_out, 0}},
      {"aten::any.out", {any_out, 0}},
      {"aten::arange.start_out", {arange_start_out, 0}},
      {"aten::argmax.out", {argmax_out, 0}},
      {"aten::avg_pool2d.out", {avg_pool2d_out, 0}},
      {"aten::bitwise_and.Scalar_out", {bitwise_and_Scalar_out, 0}},
      {"aten::bitwise_and.Tensor_out", {bitwise_and_Tensor_out, 0}},
      {"aten::bitwise_not.out", {bitwise_not_out, 0}},
      {"aten::bitwise_or.Scalar_out", {bitwise_or_Scalar_out, 0}},
      {"aten::bitwise_or.Tensor_out", {bitwise_or_Tensor_out, 0}},
      {"aten::bmm.out", {bmm_out, 0}},
      {"aten::cat.out", {cat_out, 0}},
      {"aten::clamp.out", {clamp_out, 0}},
      {"aten::convolution.out", {convolution_out, 0}},
      {"aten::copy_", {copy_, 0}},
      {"aten::cos.out", {cos_out, 0}},
      {"aten::div.out", {div_out, 0}},
      {"aten::div.out_mode", {div_out_mode, 0}},
      {"aten::embedding.out", {embedding_out, 0}},
      {"aten::eq.Scalar_out", {eq_Scalar_out, 0}},
      {"aten::eq.Tensor_out", {eq_Tensor_out, 0}},
      {"aten::expand_copy.out", {expand_copy_out, 0}},
      {"aten::flip.out", {flip_out, 0}},
      {"aten::fmod.Scalar_out", {fmod_Scalar_out, 0}},
      {"aten::full.out", {full_out, 0}},
      {"aten::ge.Scalar_out", {ge_Scalar_out, 0}},
      {"aten::ge.Tensor_out", {ge_Tensor_out, 0}},
      {"aten::gelu.out", {gelu_out, 0}},
      {"aten::gt.Scalar_out", {gt_Scalar_out, 0}},
      {"aten::gt.Tensor_out", {gt_Tensor_out, 0}},
      {"aten::hardtanh.out", {hardtanh_out, 0}},
      {"aten::index.Tensor_out", {index_Tensor_out, 0}},
      {"aten::index_put.out", {index_put_out, 0}},
      {"aten::le.Scalar_out", {le_Scalar_out, 0}},
      {"aten::le.Tensor_out", {le_Tensor_out, 0}},
      {"aten::logical_not.out", {logical_not_out, 0}},
      {"aten::logical_xor.out", {logical_xor_out, 0}},
      {"aten::lt.Scalar_out", {lt_Scalar_out, 0}},
      {"aten::lt.Tensor_out", {lt_Tensor_out, 0}},
      {"aten::max.dim_max", {max_dim_max, 0}},
      {"aten::max_pool2d_with_indices.out", {max_pool2d_with_indices_out, 0}},
      {"aten::maximum.out", {maximum_out, 0}},
      {"aten::mean.dtype_out", {mean_dtype_out, 0}},
      {"aten::mean.out", {mean_out, 0}},
      {"aten::minimum.out", {minimum_out, 0}},
      {"aten::mm.out", {mm_out, 0}},
      {"aten::mul.out", {mul_out, 0}},
      {"aten::native_layer_norm.out", {native_layer_norm_out, 0}},
      {"aten::ne.Scalar_out", {ne_Scalar_out, 0}},
      {"aten::ne.Tensor_out", {ne_Tensor_out, 0}},
      {"aten::neg.out", {neg_out, 0}},
      {"aten::permute_copy.out", {permute_copy_out, 0}},
      {"aten::relu.out", {relu_out, 0}},
      {"aten::remainder.Scalar_out", {remainder_Scalar_out, 0}},
      {"aten::scalar_tensor.out", {scalar_tensor_out, 0}},
      {"aten::select_copy.int_out", {select_copy_int_out, 0}},
      {"aten::sigmoid.out", {sigmoid_out, 0}},
      {"aten::sin.out", {sin_out, 0}},
      {"aten::slice_copy.Tensor_out", {slice_copy_Tensor_out, 0}},
      {"aten::split_with_sizes_copy.out", {split_with_sizes_copy_out, 0}},
      {"aten::squeeze_copy.dims_out", {squeeze_copy_dims_out, 0}},
      {"aten::sub.out", {sub_out, 0}},
      {"aten::sum.IntList_out", {sum_IntList_out, 0}},
      {"aten::tanh.out", {tanh_out, 0}},
      {"aten::unsqueeze_copy.out", {unsqueeze_copy_out, 0}},
      {"aten::upsample_nearest2d.vec_out", {upsample_nearest2d_vec_out, 0}},
      {"aten::var.correction_out", {var_correction_out, 0}},
      {"aten::view_copy.out", {view_copy_out, 0}},
      {"aten::where.self_out", {where_self_out, 0}},
      {"dim_order_ops::_clone_dim_order.out", {_clone_dim_order_out, 0}},
      {"dim_order_ops::_to_dim_order_copy.out", {_to_dim_order_copy_out, 0}},
      {"quantized_decomposed::choose_qparams.Tensor_out",
       {choose_qparams_Tensor_out, 0}},
      {"quantized_decomposed::choose_qparams_per_token_asymmetric.out",
       {choose_qparams_per_token_asymmetric_out, 0}},
      {"quantized_decomposed::dequantize_per_channel.out",
       {dequantize_per_channel_out, 0}},
      {"quantized_decomposed::dequantize_per_tensor.Tensor_out",
       {dequantize_per_tensor_Tensor_out, 0}},
      {"quantized_decomposed::dequantize_per_tensor.out",
       {dequantize_per_tensor_out, 0}},
      {"quantized_decomposed::dequantize_per_token.out",
       {dequantize_per_token_out, 0}},
      {"quantized_decomposed::quantize_per_channel.out",
       {quantize_per_channel_out, 0}},
      {"quantized_decomposed::quantize_per_tensor.Tensor_out",
       {quantize_per_tensor_Tensor_out, 0}},
      {"quantized_decomposed::quantize_per_tensor.out",
       {quantize_per_tensor_out, 0}},
      {"quantized_decomposed::quantize_per_token.out",
       {quantize_per_token_out, 0}},
  };
}

TEST_CASE("kernels give what PyTorch gives") {
  const char* const path = std::getenv("ORCH_REFERENCE");
  REQUIRE_MESSAGE(path != nullptr, "ORCH_REFERENCE is not set");
  ReferenceReader reader(path);
  std::map<std::string, Operator> table = operators();
  std::map<std::pair<std::string, int>, Worst> worst;

  for (uint32_t number = 0; reader.left() > 0; ++number) {
    ReferenceCall call = reader.next();
    REQUIRE(table.count(call.name) == 1);
    ++table[call.name].calls;
    CAPTURE(number);
    CAPTURE(call.name);
    REQUIRE(call.run(table[call.name].kernel) == Error::Ok);
    for (size_t i = 0; i < call.outs().size(); ++i) {
      const int dtype = static_cast<int>(call.outs()[i].dtype());
      CHECK(call.difference(i, worst[{call.name, dtype}]) == "");
    }
  }
  CHECK(reader.at_end());
  for (const auto& [name, entry] : table) {
    CAPTURE(name);
    CHECK(entry.calls > 0);
  }
  if (std::getenv("ORCH_REPORT") != nullptr) {
    for (const auto& [key, error] : worst) {
      std::printf("%s dtype %d: %.3g ulp, %.2f of the tolerance\n",
                  key.first.c_str(), key.second, error.ulps, error.share);
    }
  }
}

}  // namespace
}  // namespace orch::test
