// What the build gives kernels of several libraries for calls that it prepared:
// kernels/cortex_m/prepared.h says how.
#pragma once

#include <stdint.h>

#include "orch/prepared.h"

namespace orch {

/// A window, or weights over an input, along one dimension.
struct Axis {
  int32_t in;
  int32_t out;
  int32_t kernel;
  int32_t stride;
  int32_t padding;
  int32_t dilation;
};

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

/// Items of two tensors and of the result, which lie side by side in rows.
struct PairRows {
  int32_t rows;
  int32_t count;  // of a row
  int32_t a_row;  // from a row to the next one, in items
  int32_t b_row;
  int32_t a_step;  // from an item to the next one
  int32_t b_step;
};

/// Items of one tensor that become others, side by side.
struct ItemsCall : PreparedCall {
  const void* input;
  void* out;
  int32_t count;
};

/// The same with a number.
struct NumberCall : PreparedCall {
  const void* input;
  void* out;
  int32_t count;
  float number;
};

/// The same with limits.
struct LimitsCall : PreparedCall {
  const void* input;
  void* out;
  int32_t count;
  float low;
  float high;
};

/// What sums are kept within: -x and y for x and y that are no less than 0, as
/// bits.
struct Limits {
  int32_t low;
  int32_t high;  // -1: nothing is above
};

/// Items of two tensors.
struct PairsCall : PreparedCall {
  const void* a;
  const void* b;
  void* out;
  PairRows rows;
};

}  // namespace orch
