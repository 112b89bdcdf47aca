// Matrices in memory.
#pragma once

#include <stdint.h>

namespace orch {

/// Where the items of a matrix lie, steps in items.
template <typename T>
struct Matrix {
  T* items;
  int32_t row_step;
  int32_t column_step;
};

}  // namespace orch
