// Sums of products: the inner loop of convolution and matrix product.
#pragma once

#include <stdint.h>

#include "util/types.h"

namespace orch {

/// Three nested loops over the products of one sum, outermost first. Steps are
/// in items, of the two factors x and w.
struct DotLoops {
  int32_t count[3];
  int32_t x_step[3];
  int32_t w_step[3];
};

/// Sums that are computed side by side, where so many are left.
inline constexpr int kDotBlock = 4;

template <typename T>
__attribute__((noinline)) void dot1(const T* x, const T* w,
                                    const DotLoops& loops, Compute<T>* sums) {
  using C = Compute<T>;
  C sum = sums[0];
  for (int32_t i = 0; i < loops.count[0]; ++i) {
    const T* x_row = x + i * loops.x_step[0];
    const T* w_row = w + i * loops.w_step[0];
    for (int32_t j = loops.count[1]; j > 0; --j) {
      const T* x_item = x_row;
      const T* w_item = w_row;
      for (int32_t k = loops.count[2]; k > 0; --k) {
        sum += static_cast<C>(*x_item) * static_cast<C>(*w_item);
        x_item += loops.x_step[2];
        w_item += loops.w_step[2];
      }
      x_row += loops.x_step[1];
      w_row += loops.w_step[1];
    }
  }
  sums[0] = sum;
}

/// Four sums that share x; the second factors of neighbours are `w_next` apart.
template <typename T>
__attribute__((noinline)) void dot4(const T* x, const T* w, int32_t w_next,
                                    const DotLoops& loops, Compute<T>* sums) {
  using C = Compute<T>;
  C sum0 = sums[0];
  C sum1 = sums[1];
  C sum2 = sums[2];
  C sum3 = sums[3];
  const int32_t x_step = loops.x_step[2];
  const int32_t w_step = loops.w_step[2];
  for (int32_t i = 0; i < loops.count[0]; ++i) {
    const T* x_row = x + i * loops.x_step[0];
    const T* w_row = w + i * loops.w_step[0];
    for (int32_t j = loops.count[1]; j > 0; --j) {
      const T* x_item = x_row;
      const T* w0 = w_row;
      const T* w1 = w0 + w_next;
      const T* w2 = w1 + w_next;
      const T* w3 = w2 + w_next;
      for (int32_t k = loops.count[2]; k > 0; --k) {
        const C value = static_cast<C>(*x_item);
        x_item += x_step;
        sum0 += value * static_cast<C>(*w0);
        sum1 += value * static_cast<C>(*w1);
        sum2 += value * static_cast<C>(*w2);
        sum3 += value * static_cast<C>(*w3);
        w0 += w_step;
        w1 += w_step;
        w2 += w_step;
        w3 += w_step;
      }
      x_row += loops.x_step[1];
      w_row += loops.w_step[1];
    }
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}

/// Adds all products to `sums`: four of them if `block` is kDotBlock, else one.
/// The order of each sum is that of the loops, whatever the block.
template <typename T>
void dot(const T* x, const T* w, int32_t w_next, const DotLoops& loops,
         int block, Compute<T>* sums) {
  if (block == kDotBlock) {
    dot4(x, w, w_next, loops, sums);
  } else {
    dot1(x, w, loops, sums);
  }
}

}  // namespace orch
