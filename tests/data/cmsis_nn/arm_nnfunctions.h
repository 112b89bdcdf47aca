// Stands in for CMSIS-NN where the adapter is only compiled: structs that take
// the values that the adapter gives, and functions that take any arguments.
#pragma once

#include <stdint.h>

enum arm_cmsis_nn_status { ARM_CMSIS_NN_SUCCESS };

struct cmsis_nn_context {
  void* buf;
  int32_t size;
};
struct cmsis_nn_dims {
  int32_t n, h, w, c;
};
struct cmsis_nn_tile {
  int32_t w, h;
};
struct cmsis_nn_activation {
  int32_t min, max;
};
struct cmsis_nn_per_channel_quant_params {
  int32_t *multiplier, *shift;
};
struct cmsis_nn_per_tensor_quant_params {
  int32_t multiplier, shift;
};
struct cmsis_nn_conv_params {
  int32_t input_offset, output_offset;
  cmsis_nn_tile stride, padding, dilation;
  cmsis_nn_activation activation;
};
struct cmsis_nn_dw_conv_params {
  int32_t input_offset, output_offset, ch_mult;
  cmsis_nn_tile stride, padding, dilation;
  cmsis_nn_activation activation;
};
struct cmsis_nn_pool_params {
  cmsis_nn_tile stride, padding;
  cmsis_nn_activation activation;
};
struct cmsis_nn_fc_params {
  int32_t input_offset, filter_offset, output_offset;
  cmsis_nn_activation activation;
};
struct cmsis_nn_bmm_params {
  bool adj_x, adj_y;
  cmsis_nn_fc_params fc_params;
};

#define FUNCTION(type, name)      \
  template <typename... T>        \
  inline type name(const T&...) { \
    return type{};                \
  }
FUNCTION(arm_cmsis_nn_status, arm_avgpool_s8)
FUNCTION(arm_cmsis_nn_status, arm_batch_matmul_s8)
FUNCTION(arm_cmsis_nn_status, arm_convolve_wrapper_s8)
FUNCTION(arm_cmsis_nn_status, arm_depthwise_conv_wrapper_s8)
FUNCTION(arm_cmsis_nn_status, arm_elementwise_add_s8)
FUNCTION(arm_cmsis_nn_status, arm_elementwise_mul_s8)
FUNCTION(arm_cmsis_nn_status, arm_max_pool_s8)
FUNCTION(arm_cmsis_nn_status, arm_maximum_s8)
FUNCTION(arm_cmsis_nn_status, arm_minimum_s8)
FUNCTION(arm_cmsis_nn_status, arm_nn_vec_mat_mult_t_s8)
FUNCTION(arm_cmsis_nn_status, arm_vector_sum_s8)
FUNCTION(int32_t, arm_avgpool_s8_get_buffer_size)
FUNCTION(int32_t, arm_convolve_wrapper_s8_get_buffer_size)
FUNCTION(int32_t, arm_depthwise_conv_wrapper_s8_get_buffer_size)
FUNCTION(int32_t, arm_fully_connected_s8_get_buffer_size)
#undef FUNCTION
