// Tensors whose items are all one number.
#pragma once

#include <string.h>

#include "util/dtype.h"
#include "util/scalar.h"

namespace orch {

/// One item that is `number`, in the first bytes of `bits`; floats are
/// truncated where the dtype has integers, and integers wrap around. Errors:
/// DtypeNotSelected.
template <uint32_t kBits>
Error item_bits(ScalarType dtype, const Scalar& number, uint64_t& bits) {
  return switch_dtype<kBits>(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T value = scalar_to<T>(number);
    memcpy(&bits, &value, sizeof value);
    return Error::Ok;
  });
}

/// Sets all items to `number`. Errors: DtypeNotSelected.
template <uint32_t kBits>
Error fill(Tensor& out, const Scalar& number) {
  uint64_t bits = 0;  // of one item
  ORCH_TRY(item_bits<kBits>(out.dtype, number, bits));
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
