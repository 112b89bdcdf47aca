// What the build gives kernels for calls that it prepared.
//
// Members have the names, and the order, that
// orchestrator/method/passes/preparing/ writes: addresses first, then numbers
// of 32 bits.
#pragma once

#include <stdint.h>

#include "orch/prepared.h"

namespace orch::cortex_m {

/// A window along one dimension.
struct Axis {
  int32_t in;
  int32_t out;
  int32_t kernel;
  int32_t stride;
  int32_t padding;
  int32_t dilation;
};

/// Limits of a fused activation, within those of int8.
struct Range {
  int32_t low;
  int32_t high;
};

/// A call with packed weights (packed.h).
struct PackedCall : PreparedCall {
  const void* input;
  const void* header;
  const void* weights;
  void* scratch;
  void* out;
};

/// Where the taps of windows over an image are, in items.
struct PoolTaps {
  int32_t channels;
  int32_t row_step;
  int32_t column_step;
};

/// Windows of pooling.
struct Pool {
  int32_t batch;
  Axis rows;
  Axis columns;
  PoolTaps taps;
};

/// What items stand for: (item - zero_point) * scale.
struct ItemScale {
  int32_t zero_point;
  float scale;
};

/// Averages of windows.
struct AveragePoolCall : PreparedCall {
  const void* input;
  void* out;
  Pool pool;
  ItemScale items;
};

/// Largest items of windows.
struct MaxPoolCall : PreparedCall {
  const void* input;
  void* out;
  Pool pool;
  Range range;
};

/// Averages of whole images.
struct AverageImageCall : PreparedCall {
  const void* input;
  void* out;
  int32_t batch;
  int32_t pixels;
  PoolTaps taps;
  ItemScale items;
};

/// Sums of the items of each channel over some rows of an image.
struct SumRowsCall : PreparedCall {
  const void* input;
  void* out;
  int32_t begins;  // 1 for the first rows: sums are 0 before
  int32_t pixels;
  int32_t channels;
};

/// Averages of sums.
struct AverageSumsCall : PreparedCall {
  const void* input;
  void* out;
  int32_t pixels;  // of the image
  int32_t channels;
};

}  // namespace orch::cortex_m
