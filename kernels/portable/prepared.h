// What the build gives kernels for calls of floats that it prepared.
//
// Members have the names, and the order, that
// orchestrator/method/passes/preparing/ writes: addresses first, then numbers
// of 32 bits. Distances are in items. Calls of equal shape share it.
#pragma once

#include <stdint.h>

#include "orch/prepared.h"
#include "util/prepared.h"

namespace orch::portable {

/// How the tensors of a convolution of images and the loops over its weights
/// lie to each other.
struct Filters {
  int32_t batch;
  Axis rows;
  Axis columns;
  int32_t groups;
  int32_t channels;  // of a group
  int32_t outputs;
  int32_t x_group;  // from one group to the next
  int32_t w_group;
  // From one output channel to the next. x_next is 0 unless the convolution is
  // depthwise: seen as one group, where every output has an input of its own.
  int32_t x_next;
  int32_t w_next;
  int32_t x_image;
  int32_t x_channel;
  int32_t x_row;
  int32_t x_column;
  int32_t w_channel;
  int32_t w_row;
  int32_t w_column;
  int32_t y_image;
  int32_t y_channel;
  int32_t y_row;
  int32_t y_column;
  // Which of the loops of a sum are over rows and columns of weights; the third
  // is over input channels.
  int32_t row_loop;
  int32_t column_loop;
};

struct ConvolutionCall : PreparedCall {
  const void* input;
  const void* weight;
  const void* bias;  // or null
  void* out;
  const Filters* shape;
};

/// The same with limits.
struct LimitedConvolutionCall : PreparedCall {
  const void* input;
  const void* weight;
  const void* bias;  // or null
  void* out;
  const Filters* shape;
  Limits limits;
};

/// Products of matrices a and b, and what is added to them.
struct Matrices {
  int32_t batch;
  int32_t rows;
  int32_t inner;
  int32_t columns;
  int32_t a_matrix;
  int32_t a_row;
  int32_t a_column;
  int32_t b_matrix;
  int32_t b_row;
  int32_t b_column;
  int32_t out_matrix;
  int32_t out_row;
  int32_t out_column;
  int32_t added_row;
  int32_t added_column;
  float alpha;  // times the product
  float beta;   // times what is added
};

struct MatmulCall : PreparedCall {
  const void* a;
  const void* b;
  const void* added;  // or null
  void* out;
  const Matrices* shape;
};

/// The same with limits.
struct LimitedMatmulCall : PreparedCall {
  const void* a;
  const void* b;
  const void* added;  // or null
  void* out;
  const Matrices* shape;
  Limits limits;
};

/// Averages of whole images.
struct AverageImages {
  int32_t batch;
  int32_t channels;
  int32_t pixels;
  int32_t x_image;
  int32_t x_channel;
  int32_t x_pixel;
  float divisor;
};

struct AverageImagesCall : PreparedCall {
  const void* input;
  void* out;
  const AverageImages* shape;
};

/// Averages of windows.
struct AverageWindows {
  int32_t batch;
  int32_t channels;
  Axis rows;
  Axis columns;
  int32_t x_image;
  int32_t x_channel;
  int32_t x_row;
  int32_t x_column;
  int32_t y_image;
  int32_t y_channel;
  int32_t y_row;
  int32_t y_column;
  int32_t with_padding;  // 1 if padding counts
  int32_t divisor;       // in place of the count, unless it is 0
};

struct AverageWindowsCall : PreparedCall {
  const void* input;
  void* out;
  const AverageWindows* shape;
};

/// A dimension of an image that is scaled: sizes, and how far an output item is
/// from the next one, in input items.
struct ScaledSide {
  int32_t in;
  int32_t out;
  float scale;
};

/// An image whose channels lie side by side, scaled, or some of its rows.
struct ScaleCall : PreparedCall {
  const void* input;
  void* out;
  int32_t in_first;  // which row the first one of the input is
  int32_t first;     // the same of the output
  int32_t count;     // rows of the output
  ScaledSide rows;   // of the whole image
  ScaledSide columns;
  int32_t corners;     // whether first and last items stay where they are
  int32_t pixel_size;  // items of a pixel; its bytes if these are moved
};

}  // namespace orch::portable
