// What tests/qemu/test_kernel_variants.py computes with two variants of the
// int8 kernels.
#pragma once

#include <stdint.h>

enum class ProblemKind : int32_t { kConvolution, kMatrix, kDepthwise };

/// A call of an inner function of the kernels, as numbers.
struct Problem {
  ProblemKind kind;
  int32_t batch;
  int32_t height;
  int32_t width;
  int32_t channels;
  int32_t groups;
  int32_t outputs;
  int32_t kernel[2];
  int32_t stride[2];
  int32_t padding[2];
  int32_t dilation[2];
  int32_t x_offset;
  int32_t w_offset;
  int32_t step;
  int32_t offset;
  int32_t low;
  int32_t high;
  const int8_t* x;
  const int8_t* w;
  const int32_t* bias;
  const int32_t* multipliers;
  const int32_t* shifts;
};

/// Computes it with plain C++; how many items were written, or -1 if it has no
/// output.
int32_t run_scalar(const Problem& problem, int8_t* y);

/// The same with the instructions of the target.
int32_t run_vectors(const Problem& problem, int8_t* y);
