// Tensors whose items are all one number.
#pragma once

#include <string.h>

#include "util/dtype.h"
#include "util/scalar.h"

namespace orch {

/// As many bits as the widest item of these dtypes has.
template <uint32_t kBits>
using ItemBits =
    typename Choose<has_item_bytes(DtypeSet{kBits}, 16), Words, uint64_t>::type;

/// The bits of `number` as an item of `dtype`: floats are truncated where the
/// tensor has integers, and integers wrap around. Errors: DtypeNotSelected.
template <uint32_t kBits>
Error item_bits(ScalarType dtype, const Scalar& number, ItemBits<kBits>& bits) {
  bits = {};
  return switch_dtype<kBits>(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T value = scalar_to<T>(number);
    memcpy(&bits, &value, sizeof value);
    return Error::Ok;
  });
}

/// Sets all items to one that has these bits. Errors: DtypeNotSelected.
template <uint32_t kBits>
Error fill_bits(Tensor& out, const uint64_t& bits) {
  return switch_item<kBits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = out.mutable_data<T>();
    T value;
    memcpy(&value, &bits, sizeof value);
    for (int32_t left = out.numel(); left > 0; --left) *to++ = value;
    return Error::Ok;
  });
}

/// Sets all items to `number`. Errors: DtypeNotSelected.
template <uint32_t kBits>
Error fill(Tensor& out, const Scalar& number) {
  uint64_t bits = 0;
  ORCH_TRY(item_bits<kBits>(out.dtype, number, bits));
  return fill_bits<kBits>(out, bits);
}

}  // namespace orch
