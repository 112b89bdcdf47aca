// From our arguments to those of CMSIS-NN.
#pragma once

#include <stdint.h>

#include "arm_nnfunctions.h"
#include "cortex_m/image.h"
#include "cortex_m/prepared.h"
#include "orch/kernel.h"

namespace cmsis_adapter {

using namespace orch;
using namespace orch::cortex_m;

/// Largest size of an image's dimension: some of CMSIS-NN's code keeps sizes in
/// 16 bits.
constexpr int32_t kMaxSize = 0x7fff;

/// The error that stands for a status. What is not success is a call that
/// CMSIS-NN has no code for: arguments were checked before.
inline Error to_error(arm_cmsis_nn_status status) {
  return status == ARM_CMSIS_NN_SUCCESS ? Error::Ok : Error::NotSupported;
}

inline cmsis_nn_dims to_dims(const Image& image) {
  return {image.batch, image.height, image.width, image.channels};
}

inline Image input_of(const Pool& pool) {
  return {pool.batch, pool.rows.in, pool.columns.in, pool.taps.channels};
}

inline Image output_of(const Pool& pool) {
  return {pool.batch, pool.rows.out, pool.columns.out, pool.taps.channels};
}

/// Whether all sizes are at least 1 and as small as CMSIS-NN needs them.
inline bool fits(const Image& image) {
  const int32_t sizes[] = {image.batch, image.height, image.width,
                           image.channels};
  for (const int32_t size : sizes) {
    if (size < 1 || size > kMaxSize) return false;
  }
  return true;
}

/// Hands scratch memory over. What CMSIS-NN would write past its end belongs to
/// other tensors, so the size is looked at in every call: a program may have
/// been exported for another core. Errors: InvalidArgument (smaller than
/// `bytes`), Misaligned.
inline Error give_scratch(const Tensor& scratch, int32_t bytes,
                          cmsis_nn_context& context) {
  ORCH_CHECK(bytes >= 0 && scratch.nbytes() >= static_cast<size_t>(bytes),
             Error::InvalidArgument);
  ORCH_CHECK(reinterpret_cast<uintptr_t>(scratch.memory) % 4 == 0,
             Error::Misaligned);
  // Some functions take memory that is there for memory they may use.
  context = {bytes == 0 ? nullptr : scratch.memory, bytes};
  return Error::Ok;
}

/// Scales per output channel. CMSIS-NN takes them as if it wrote to them.
inline cmsis_nn_per_channel_quant_params to_scales(const Tensor& multipliers,
                                                   const Tensor& shifts) {
  return {multipliers.mutable_data<int32_t>(), shifts.mutable_data<int32_t>()};
}

inline const int32_t* int_data(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<int32_t>();
}

}  // namespace cmsis_adapter
