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

/// Where the factors of a sum begin, and how far away those of the sum beside it
/// do; an x_next of 0 means that all share x.
template <typename T>
struct DotFactors {
  const T* x;
  const T* w;
  int32_t x_next;
  int32_t w_next;
};

/// Hides from the compiler where a pointer came from: pointers that move in step
/// are then kept in a register each, instead of added up again in every turn.
template <typename T>
void keep_apart(const T*& pointer) {
  asm("" : "+r"(pointer));
}

template <typename T>
__attribute__((noinline)) void dot1(const DotFactors<T>& factors,
                                    const DotLoops& loops, Compute<T>* sums) {
  using C = Compute<T>;
  C sum = sums[0];
  const T* x = factors.x;
  const T* w = factors.w;
  // What is left to go to the next turn of a loop after those inside of it.
  const int32_t x_jump = loops.x_step[1] - loops.count[2] * loops.x_step[2];
  const int32_t w_jump = loops.w_step[1] - loops.count[2] * loops.w_step[2];
  for (int32_t i = loops.count[0]; i > 0; --i) {
    for (int32_t j = loops.count[1]; j > 0; --j) {
      for (int32_t k = loops.count[2]; k > 0; --k) {
        sum += static_cast<C>(*x) * static_cast<C>(*w);
        x += loops.x_step[2];
        w += loops.w_step[2];
      }
      x += x_jump;
      w += w_jump;
    }
    x += loops.x_step[0] - loops.count[1] * loops.x_step[1];
    w += loops.w_step[0] - loops.count[1] * loops.w_step[1];
  }
  sums[0] = sum;
}

/// kDotBlock sums.
template <typename T, bool kSharedX>
__attribute__((noinline)) void dot4(const DotFactors<T>& factors,
                                    const DotLoops& loops, Compute<T>* sums) {
  using C = Compute<T>;
  C sum0 = sums[0];
  C sum1 = sums[1];
  C sum2 = sums[2];
  C sum3 = sums[3];
  const T* x = factors.x;
  const int32_t x_next = factors.x_next;
  const T* w0 = factors.w;
  const T* w1 = w0 + factors.w_next;
  const T* w2 = w1 + factors.w_next;
  const T* w3 = w2 + factors.w_next;
  for (int32_t i = loops.count[0]; i > 0; --i) {
    for (int32_t j = loops.count[1]; j > 0; --j) {
      const int32_t x_step = loops.x_step[2];
      const int32_t w_step = loops.w_step[2];
      for (int32_t k = loops.count[2]; k > 0; --k) {
        if constexpr (kSharedX) {
          const C value = static_cast<C>(*x);
          sum0 += value * static_cast<C>(*w0);
          sum1 += value * static_cast<C>(*w1);
          sum2 += value * static_cast<C>(*w2);
          sum3 += value * static_cast<C>(*w3);
        } else {
          const T* item = x;
          sum0 += static_cast<C>(*item) * static_cast<C>(*w0);
          item += x_next;
          sum1 += static_cast<C>(*item) * static_cast<C>(*w1);
          item += x_next;
          sum2 += static_cast<C>(*item) * static_cast<C>(*w2);
          item += x_next;
          sum3 += static_cast<C>(*item) * static_cast<C>(*w3);
        }
        x += x_step;
        w0 += w_step;
        w1 += w_step;
        w2 += w_step;
        w3 += w_step;
        keep_apart(w0);
        keep_apart(w1);
        keep_apart(w2);
        keep_apart(w3);
      }
      x += loops.x_step[1] - loops.count[2] * x_step;
      const int32_t w_jump = loops.w_step[1] - loops.count[2] * w_step;
      w0 += w_jump;
      w1 += w_jump;
      w2 += w_jump;
      w3 += w_jump;
    }
    x += loops.x_step[0] - loops.count[1] * loops.x_step[1];
    const int32_t w_jump = loops.w_step[0] - loops.count[1] * loops.w_step[1];
    w0 += w_jump;
    w1 += w_jump;
    w2 += w_jump;
    w3 += w_jump;
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}

/// Adds all products to `sums`: to four of them if `block` is kDotBlock, else to
/// one. The order of each sum is that of the loops, whatever the block.
template <typename T>
void dot(const DotFactors<T>& factors, const DotLoops& loops, int block,
         Compute<T>* sums) {
  if (block != kDotBlock) {
    dot1(factors, loops, sums);
  } else if (factors.x_next == 0) {
    dot4<T, true>(factors, loops, sums);
  } else {
    dot4<T, false>(factors, loops, sums);
  }
}

}  // namespace orch
