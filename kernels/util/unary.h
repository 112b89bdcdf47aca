// Operators that map each item of one tensor to one item of another.
#pragma once

#include "util/dtype.h"
#include "util/promote.h"
#include "util/strided_loop.h"

namespace orch {

/// to[...] = fn(from[...]); tensor 0 of the loop is `to`, tensor 1 is `from`.
template <typename T, typename Fn>
void map_rows(StridedLoop& loop, const T* from, T* to, Fn fn) {
  for (; loop.valid(); loop.next()) {
    const T* source = from + loop.offset(1);
    T* target = to + loop.offset(0);
    const int32_t source_step = loop.row_stride(1);
    const int32_t target_step = loop.row_stride(0);
    for (int32_t left = loop.row_size(); left > 0; --left) {
      *target = fn(*source);
      source += source_step;
      target += target_step;
    }
  }
}

/// out[i] = fn(self[i]) for all indices; same sizes, any dim orders.
template <typename T, typename Fn>
void map_unary(const Tensor& self, Tensor& out, Fn fn) {
  StridedLoop loop = loop_over(out, self);
  map_rows(loop, self.data<T>(), out.mutable_data<T>(), fn);
}

/// out = fn(self) for functions of real numbers, called with float or double:
/// any dtype in, floats out. Integers are computed in float.
///
/// kBits: dtypes of `self` and `out`. Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, typename Fn>
Error unary_floating(const Tensor& self, Tensor& out, Fn fn) {
  constexpr DtypeSet kDtypes{kBits};
  constexpr DtypeSet kOut = kDtypes & kFloating;
  ORCH_CHECK(kFloating.has(out.dtype), Error::InvalidArgument);
  ORCH_TRY(resize(out, self.sizes()));
  if (self.dtype == out.dtype) {
    return switch_dtype<kOut.bits>(out.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      map_unary<T>(self, out, [fn](T x) {
        return static_cast<T>(fn(static_cast<Compute<T>>(x)));
      });
      return Error::Ok;
    });
  }
  if constexpr (!kDtypes.single()) {
    ORCH_CHECK(kDtypes.has(self.dtype) && kOut.has(out.dtype),
               Error::DtypeNotSelected);
    const bool floating = kFloating.has(self.dtype);
    const ScalarType common = floating ? self.dtype : ScalarType::Float;
    constexpr DtypeSet kCommon = kOut | dtype_set(ScalarType::Float);
    return switch_dtype<kCommon.bits>(common, [&](auto type) {
      using T = typename decltype(type)::type;
      StridedLoop loop = loop_over(out, self);
      for (; loop.valid(); loop.next()) {
        for (int32_t i = 0; i < loop.row_size(); ++i) {
          const T x = load_as<T, kBits>(
              self.dtype, self.memory, loop.offset(1) + i * loop.row_stride(1));
          store_as<kOut.bits>(out.dtype, out.memory,
                              loop.offset(0) + i * loop.row_stride(0),
                              static_cast<T>(fn(static_cast<Compute<T>>(x))));
        }
      }
      return Error::Ok;
    });
  }
  return Error::DtypeNotSelected;
}

}  // namespace orch
