// Kernels under test. In a build they are declared by the generated table.
#pragma once

#include "orch/kernel.h"

namespace orch::cortex_m {

Error dequantize_per_tensor_out(const Args& args);
Error maximum_out(const Args& args);
Error minimum_out(const Args& args);
Error pad_out(const Args& args);
Error quantize_per_tensor_out(const Args& args);
Error quantized_activation_out(const Args& args);
Error quantized_add_out(const Args& args);
Error quantized_avg_pool2d_out(const Args& args);
Error quantized_avg_pool2d_nhwc_out(const Args& args);
Error quantized_batch_matmul_out(const Args& args);
Error quantized_conv2d_out(const Args& args);
Error quantized_conv2d_nhwc_out(const Args& args);
Error quantized_depthwise_conv2d_out(const Args& args);
Error quantized_depthwise_conv2d_nhwc_out(const Args& args);
Error quantized_div_out(const Args& args);
Error quantized_linear_out(const Args& args);
Error quantized_max_pool2d_out(const Args& args);
Error quantized_max_pool2d_nhwc_out(const Args& args);
Error quantized_mul_out(const Args& args);
Error quantized_transpose_conv2d_out(const Args& args);
Error quantized_transpose_conv2d_nhwc_out(const Args& args);
Error softmax_out(const Args& args);
Error transpose_out(const Args& args);

}  // namespace orch::cortex_m

namespace orch::portable {

Error _clone_dim_order_out(const Args& args);
Error _native_batch_norm_legit_no_training_out(const Args& args);
Error _softmax_out(const Args& args);
Error _to_dim_order_copy_out(const Args& args);
Error abs_out(const Args& args);
Error add_out(const Args& args);
Error addmm_out(const Args& args);
Error any_all_out(const Args& args);
Error any_dims_out(const Args& args);
Error any_out(const Args& args);
Error arange_start_out(const Args& args);
Error argmax_out(const Args& args);
Error avg_pool2d_out(const Args& args);
Error bitwise_and_Scalar_out(const Args& args);
Error bitwise_and_Tensor_out(const Args& args);
Error bitwise_not_out(const Args& args);
Error bitwise_or_Scalar_out(const Args& args);
Error bitwise_or_Tensor_out(const Args& args);
Error bmm_out(const Args& args);
Error cat_out(const Args& args);
Error clamp_out(const Args& args);
Error convolution_out(const Args& args);
Error copy_(const Args& args);
Error cos_out(const Args& args);
Error div_out(const Args& args);
Error div_out_mode(const Args& args);
Error embedding_out(const Args& args);
Error eq_Scalar_out(const Args& args);
Error eq_Tensor_out(const Args& args);
Error expand_copy_out(const Args& args);
Error flip_out(const Args& args);
Error fmod_Scalar_out(const Args& args);
Error full_out(const Args& args);
Error ge_Scalar_out(const Args& args);
Error ge_Tensor_out(const Args& args);
Error gelu_out(const Args& args);
Error gt_Scalar_out(const Args& args);
Error gt_Tensor_out(const Args& args);
Error hardtanh_out(const Args& args);
Error index_Tensor_out(const Args& args);
Error index_put_out(const Args& args);
Error le_Scalar_out(const Args& args);
Error le_Tensor_out(const Args& args);
Error logical_not_out(const Args& args);
Error logical_xor_out(const Args& args);
Error lt_Scalar_out(const Args& args);
Error lt_Tensor_out(const Args& args);
Error max_dim_max(const Args& args);
Error max_pool2d_with_indices_out(const Args& args);
Error maximum_out(const Args& args);
Error mean_dtype_out(const Args& args);
Error mean_out(const Args& args);
Error minimum_out(const Args& args);
Error mm_out(const Args& args);
Error mul_out(const Args& args);
Error native_layer_norm_out(const Args& args);
Error ne_Scalar_out(const Args& args);
Error ne_Tensor_out(const Args& args);
Error neg_out(const Args& args);
Error permute_copy_out(const Args& args);
Error relu_out(const Args& args);
Error remainder_Scalar_out(const Args& args);
Error scalar_tensor_out(const Args& args);
Error select_copy_int_out(const Args& args);
Error sigmoid_out(const Args& args);
Error sin_out(const Args& args);
Error slice_copy_Tensor_out(const Args& args);
Error split_with_sizes_copy_out(const Args& args);
Error squeeze_copy_dims_out(const Args& args);
Error sub_out(const Args& args);
Error sum_IntList_out(const Args& args);
Error tanh_out(const Args& args);
Error unsqueeze_copy_out(const Args& args);
Error upsample_nearest2d_vec_out(const Args& args);
Error var_correction_out(const Args& args);
Error view_copy_out(const Args& args);
Error where_self_out(const Args& args);

}  // namespace orch::portable

namespace orch::prim_ops {

Error _local_scalar_dense(const Args& args);
Error add_Scalar(const Args& args);
Error ceil_Scalar(const Args& args);
Error eq_Scalar(const Args& args);
Error et_copy_index_tensor(const Args& args);
Error et_view_default(const Args& args);
Error floordiv_Scalar(const Args& args);
Error floordiv_int(const Args& args);
Error ge_Scalar(const Args& args);
Error gt_Scalar(const Args& args);
Error le_Scalar(const Args& args);
Error lt_Scalar(const Args& args);
Error mod_int(const Args& args);
Error mul_Scalar(const Args& args);
Error neg_Scalar(const Args& args);
Error round_Scalar(const Args& args);
Error sub_Scalar(const Args& args);
Error sym_float_Scalar(const Args& args);
Error sym_int_Scalar(const Args& args);
Error sym_ite_Scalar(const Args& args);
Error sym_max_Scalar(const Args& args);
Error sym_min_Scalar(const Args& args);
Error sym_not_Scalar(const Args& args);
Error sym_numel(const Args& args);
Error sym_size_int(const Args& args);
Error truediv_Scalar(const Args& args);

}  // namespace orch::prim_ops

namespace orch::quantized {

Error choose_qparams_Tensor_out(const Args& args);
Error choose_qparams_per_token_asymmetric_out(const Args& args);
Error dequantize_per_channel_out(const Args& args);
Error dequantize_per_tensor_Tensor_out(const Args& args);
Error dequantize_per_tensor_out(const Args& args);
Error dequantize_per_token_out(const Args& args);
Error quantize_per_channel_out(const Args& args);
Error quantize_per_tensor_Tensor_out(const Args& args);
Error quantize_per_tensor_out(const Args& args);
Error quantize_per_token_out(const Args& args);

}  // namespace orch::quantized
