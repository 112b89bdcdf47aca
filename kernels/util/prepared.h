// What the build gives kernels of several libraries for calls that it prepared:
// kernels/cortex_m/prepared.h says how.
#pragma once

#include <stdint.h>

#include "orch/prepared.h"

namespace orch {

/// What floats become numbers of at most 16 bits with, limited before they are
/// rounded.
struct NearAffine {
  float inverse;
  float low;   // less the zero point
  float high;  // the same
  int32_t zero_point;
};

/// The same with vectors, limited at the end.
struct VectorAffine {
  float inverse;
  float zero_point;
  float low;
  float high;
};

/// Floats that are quantized, items side by side.
struct QuantizeNearCall : PreparedCall {
  const void* input;
  void* out;
  int32_t count;
  NearAffine affine;
};

struct QuantizeVectorsCall : PreparedCall {
  const void* input;
  void* out;
  int32_t count;
  VectorAffine affine;
};

/// Quantized numbers that become floats, items side by side.
struct DequantizeCall : PreparedCall {
  const void* input;
  void* out;
  int32_t count;
  int32_t zero_point;
  float scale;
};

}  // namespace orch
