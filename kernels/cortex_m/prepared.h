// What the build gives kernels for calls that it prepared.
//
// Members have the names, and the order, that
// orchestrator/method/passes/preparing/ writes: addresses first, then numbers
// of 32 bits.
#pragma once

#include <stdint.h>

#include "orch/prepared.h"
#include "requantize.h"
#include "util/prepared.h"

namespace orch::cortex_m {

/// Sizes of an image whose memory is NHWC.
struct Image {
  int32_t batch;
  int32_t height;
  int32_t width;
  int32_t channels;
};

/// A call with packed weights (packed.h).
struct PackedCall : PreparedCall {
  const void* input;
  const void* header;
  const void* weights;
  void* scratch;
  void* out;
};

/// The same, with limits for what is stored.
struct LimitedPackedCall : PreparedCall {
  const void* input;
  const void* header;
  const void* weights;
  void* scratch;
  void* out;
  Range range;
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

/// One of two tensors, brought to the scale of their sum.
struct Addend {
  int32_t zero_point;
  Scale scale;
};

/// What a sum is computed from. Known to assembly.
struct Addition {
  Addend a;
  Addend b;
  Addend sum;
  Range range;
};

struct AddCall : PreparedCall {
  const void* a;
  const void* b;
  void* out;
  PairRows rows;
  Addition add;
};

/// What a product is computed with.
struct Product {
  int32_t a;  // zero points
  int32_t b;
  int32_t zero_point;
  Scale scale;
};

struct MultiplyCall : PreparedCall {
  const void* a;
  const void* b;
  void* out;
  PairRows rows;
  Product product;
};

/// The larger or smaller of two.
struct ExtremeCall : PreparedCall {
  const void* a;
  const void* b;
  void* out;
  PairRows rows;
};

/// Items by a table of all there are.
struct ActivationCall : PreparedCall {
  const void* input;
  const void* table;
  void* out;
  int32_t count;
};

/// An image, or another tensor, inside of a larger one. Dimensions are those of
/// the memory, outermost first.
struct PadCall : PreparedCall {
  const void* input;
  void* out;
  int32_t value;
  int32_t bytes;     // of the output
  int32_t before;    // in front of the first row, in the output
  int32_t sizes[3];  // rows of the input: how many
  int32_t steps[3];  // from one to the next in the output
  int32_t row;       // items
};

/// Items in another order of dimensions; these are those of the output,
/// outermost first.
struct TransposeCall : PreparedCall {
  const void* input;
  void* out;
  int32_t sizes[4];
  int32_t steps[4];  // from an index to the next one in the input
};

/// What exponents of a row are computed with.
struct Softmax {
  int32_t multiplier;
  uint32_t shift;
  int32_t diff_min;
};

/// Shares of the items of rows that lie side by side.
struct SoftmaxCall : PreparedCall {
  const void* input;
  void* out;
  int32_t rows;
  int32_t count;  // of a row
  Softmax softmax;
};

/// What convolutions and matrix products have besides tensors.
struct ConvolutionSizes {
  Image in;
  Image out;
  Axis rows;
  Axis columns;
  int32_t group_channels;  // input channels that an output channel sees
  int32_t group_outputs;   // output channels that see the same
  int32_t multiplier;      // of a depthwise one: outputs per input channel
  int32_t x_offset;        // added to inputs that are no padding
  int32_t w_offset;        // added to weights
};

/// A convolution or matrix product with weights as the program has them.
struct ConvolutionCall : PreparedCall {
  const void* input;
  const void* weights;
  const void* bias;         // or null
  const void* multipliers;  // null where `scale` is that of all outputs
  const void* shifts;       // the same
  void* out;
  ConvolutionSizes sizes;
  Scale scale;
  int32_t offset;  // added to outputs
  Range range;
};

/// Windows of a transposed convolution (transposed.h) along one dimension.
struct TransposedAxis {
  Axis axis;
  int32_t tap_step;  // between taps of one output
  int32_t in_step;   // inputs that it goes back by
};

/// What transposed convolutions have besides tensors.
struct TransposedSizes {
  Image in;
  Image out;
  TransposedAxis rows;
  TransposedAxis columns;
  int32_t x_offset;  // added to inputs
};

/// A transposed convolution with weights as the program has them.
struct TransposedCall : PreparedCall {
  const void* input;
  const void* weights;
  const void* bias;  // or null
  const void* multipliers;
  const void* shifts;
  void* out;
  TransposedSizes sizes;
  int32_t offset;  // added to outputs
  Range range;
};

/// What a quotient is computed with.
struct Quotient {
  int32_t a;  // zero points
  int32_t b;
  float zero_point;
  float scale;
  float low;
  float high;
};

struct DivideCall : PreparedCall {
  const void* a;
  const void* b;
  void* out;
  PairRows rows;
  Quotient quotient;
};

}  // namespace orch::cortex_m
