// Floats to quantized numbers and back, items that lie side by side.
#pragma once

#include "util/affine.h"
#include "util/check.h"

namespace orch::cortex_m {

/// Dtypes of quantized numbers.
inline constexpr DtypeSet kItems =
    dtype_set(ScalarType::Char, ScalarType::Short);

/// Gives `out` the sizes of `input`. Errors: those of `resize`; NotSupported
/// (the tensors are laid out differently).
inline Error prepare_items(const Tensor& input, Tensor& out) {
  ORCH_CHECK(same_layout(input, out), Error::NotSupported);
  return set_sizes(out, input.sizes());
}

}  // namespace orch::cortex_m
