// Operators that map each item of one tensor to one item of another.
#pragma once

#include "util/check.h"
#include "util/dtype.h"
#include "util/lanes.h"
#include "util/prepared.h"
#include "util/promote.h"
#include "util/scalar.h"
#include "util/strided_loop.h"

namespace orch {

/// to[...] = fn(from[...]); tensor 0 of the loop is `to`, tensor 1 is `from`.
template <typename T, typename R, typename Fn>
void map_rows(StridedLoop& loop, const T* from, R* to, Fn fn) {
  for (; loop.valid(); loop.next()) {
    const T* source = from + loop.offset(1);
    R* target = to + loop.offset(0);
    const int32_t source_step = loop.row_stride(1);
    const int32_t target_step = loop.row_stride(0);
    int32_t left = loop.row_size();
    if constexpr (kInLanes<Fn>) {
      if (source_step == 1 && target_step == 1) {
        fn.row(source, target, left);
        continue;
      }
    } else if constexpr (kFavourSpeed) {
      if (source_step == 1 && target_step == 1) {
        for (int32_t i = 0; i < left; ++i) target[i] = fn(source[i]);
        continue;
      }
    }
    do {
      *target = fn(*source);
      source += source_step;
      target += target_step;
    } while (--left != 0);
  }
}

/// out[i] = fn(self[i]) for all indices; same sizes, any dim orders.
template <typename T, typename Fn>
void map_unary(const Tensor& self, Tensor& out, Fn fn) {
  StridedLoop loop = loop_over(out, self);
  map_rows(loop, self.data<T>(), out.mutable_data<T>(), fn);
}

/// to[i] = fn(from[i]) for floats of a prepared call.
template <typename Call, typename Fn>
ORCH_ALWAYS_INLINE void map_prepared(const Call& call, const Fn& fn) {
  const float* from = static_cast<const float*>(call.input);
  float* to = static_cast<float*>(call.out);
  if constexpr (kInLanes<Fn>) {
    fn.row(from, to, call.count);
  } else {
    int32_t left = call.count;
    do {
      *to++ = fn(*from++);
      keep_apart(from);
    } while (--left != 0);
  }
}

/// out = fn(self) for a function from T to R; the rest is that of map_in.
template <typename T, uint32_t kIn, uint32_t kOut, typename Fn>
Error map_as(const Tensor& self, Tensor& out, Fn fn) {
  using R = decltype(fn(T()));
  constexpr DtypeSet kT = dtype_set(DtypeOf<T>::value);
  constexpr DtypeSet kR = dtype_set(DtypeOf<R>::value);
  constexpr DtypeSet kFrom = castable_from(DtypeSet{kIn}, kT);
  constexpr DtypeSet kTo = castable_to(DtypeSet{kOut}, kR);
  if constexpr ((kFrom & kT).bits != 0 && (kTo & kR).bits != 0) {
    if (self.dtype == DtypeOf<T>::value && out.dtype == DtypeOf<R>::value) {
      StridedLoop loop = loop_over(out, self);
      map_rows(loop, self.data<T>(), out.mutable_data<R>(), fn);
      return Error::Ok;
    }
  }
  if constexpr (converts(kFrom, kT) || converts(kTo, kR)) {
    ORCH_CHECK(kFrom.has(self.dtype) && kTo.has(out.dtype),
               Error::DtypeNotSelected);
    StridedLoop loop = loop_over(out, self);
    for (; loop.valid(); loop.next()) {
      for (int32_t i = 0; i < loop.row_size(); ++i) {
        const T x = load_as<T, kFrom.bits>(
            self.dtype, self.memory, loop.offset(1) + i * loop.row_stride(1));
        store_as<kTo.bits>(out.dtype, out.memory,
                           loop.offset(0) + i * loop.row_stride(0), fn(x));
      }
    }
    return Error::Ok;
  }
  return Error::DtypeNotSelected;
}

/// out = fn(self), computed in the dtype `common`, one of kCommon.
///
/// make(Type<T>{}) gives the function, from T to R, for the C++ type of
/// `common`. kIn: dtypes of `self`; kOut: dtypes of `out`. Conversions are made
/// only if those sets need them. Trusts that the sizes are the same and that
/// `self` may be cast to `common`, and R to `out`. Errors: DtypeNotSelected.
template <uint32_t kIn, uint32_t kOut, uint32_t kCommon, typename Make>
Error map_in(ScalarType common, const Tensor& self, Tensor& out, Make make) {
  return switch_dtype<kCommon>(common, [&](auto type) {
    using T = typename decltype(type)::type;
    return map_as<T, kIn, kOut>(self, out, make(type));
  });
}

/// out = fn(self) with numbers besides, computed in what tensor and numbers
/// promote to, `common`; make(Type<T>{}) gives the function from T to T.
///
/// kBits: dtypes of `self` and `out`; kTaken: what the operator computes in.
/// Errors: InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits, uint32_t kTaken, typename Make>
Error unary_in(ScalarType common, const Tensor& self, Tensor& out, Make make) {
  constexpr DtypeSet kDtypes{kBits};
  constexpr DtypeSet kCommon = with_number(kDtypes) & DtypeSet{kTaken};
  ORCH_CHECK(can_cast(common, out.dtype), Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  return map_in<kBits, kBits, usable(kCommon, kDtypes).bits>(common, self, out,
                                                             make);
}

/// out = fn(self), all of one dtype. Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, typename Make>
Error unary_same(const Tensor& self, Tensor& out, Make make) {
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    map_unary<typename decltype(type)::type>(self, out, make(type));
    return Error::Ok;
  });
}

/// out = fn(self) for functions of real numbers, called with float or double,
/// or with Lanes: any dtype in, floats out. Integers are computed in float.
///
/// kBits: dtypes of `self` and `out`. Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, typename Fn>
Error unary_floating(const Tensor& self, Tensor& out, Fn fn) {
  constexpr DtypeSet kDtypes{kBits};
  constexpr DtypeSet kOut = kDtypes & kFloating;
  ORCH_CHECK(kFloating.has(out.dtype), Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  if (self.dtype == out.dtype) {
    return switch_dtype<kOut.bits>(out.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      if constexpr (kInLanes<Fn> && (kIsSame<T, float> || kHalvesInLanes<T>)) {
        map_unary<T>(self, out, fn);
      } else {
        map_unary<T>(self, out, [fn](T x) {
          return static_cast<T>(fn(static_cast<Compute<T>>(x)));
        });
      }
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
