// Tensors whose items are all one number.
#pragma once

#include <string.h>

#include "util/dtype.h"
#include "util/scalar.h"

namespace orch {

/// Sets all items to `number`; floats are truncated where the tensor has
/// integers, and integers wrap around. Errors: DtypeNotSelected.
template <uint32_t kBits>
Error fill(Tensor& out, const Scalar& number) {
  uint64_t bits = 0;  // of one item
  ORCH_TRY(switch_dtype<kBits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T value = scalar_to<T>(number);
    memcpy(&bits, &value, sizeof value);
    return Error::Ok;
  }));
  return switch_item<kBits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = out.mutable_data<T>();
    T value;
    memcpy(&value, &bits, sizeof value);
    for (int32_t left = out.numel(); left > 0; --left) *to++ = value;
    return Error::Ok;
  });
}

}  // namespace orch
