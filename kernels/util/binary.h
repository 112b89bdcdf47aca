// Operators that map the items of two tensors, broadcast, to those of a third.
#pragma once

#include "orch/value.h"
#include "util/broadcast.h"
#include "util/dtype.h"
#include "util/lanes.h"
#include "util/prepared.h"
#include "util/promote.h"
#include "util/scalar.h"

namespace orch {

/// out = fn(a, b) for floats of a prepared call. kSideBySide: whether those of
/// a row are, in all tensors.
template <bool kSideBySide, typename Fn>
ORCH_ALWAYS_INLINE void map_prepared_pairs(const PreparedCall& prepared,
                                           const Fn& fn) {
  const auto& call = static_cast<const PairsCall&>(prepared);
  const PairRows& rows = call.rows;
  const float* a = static_cast<const float*>(call.a);
  const float* b = static_cast<const float*>(call.b);
  float* to = static_cast<float*>(call.out);
  for (int32_t row = rows.rows; row > 0; --row) {
    if constexpr (kSideBySide && kInLanes<Fn>) {
      fn.row(a, to, rows.count, b);
      to += rows.count;
    } else {
      const int32_t a_step = kSideBySide ? 1 : rows.a_step;
      const int32_t b_step = kSideBySide ? 1 : rows.b_step;
      const float* x = a;
      const float* y = b;
      int32_t left = rows.count;
      do {
        *to++ = fn(*x, *y);
        x += a_step;
        y += b_step;
        keep_apart(x);
        keep_apart(y);
      } while (--left != 0);
    }
    a += rows.a_row;
    b += rows.b_row;
  }
}

/// The dtype that an operator on two tensors computes in and whose category its
/// output must hold: that of all, or what `a` and `b` promote to.
///
/// kBits: dtypes of the three. Errors: InvalidArgument, DtypeNotSelected.
template <uint32_t kBits>
inline Error common_dtype(const Tensor& a, const Tensor& b, const Tensor& out,
                          ScalarType& common) {
  common = out.dtype;
  if (a.dtype == b.dtype && a.dtype == out.dtype) return Error::Ok;
  constexpr DtypeSet kDtypes{kBits};
  if constexpr (!kDtypes.single()) {
    common = result_type(a, b);
    ORCH_CHECK(can_cast(common, out.dtype), Error::InvalidArgument);
    return Error::Ok;
  }
  return Error::DtypeNotSelected;
}

/// out = fn(a, b) for a function from two T to R; the rest is that of map_in.
template <typename T, uint32_t kIn, uint32_t kOut, typename Fn>
Error map_as(const Tensor& a, const Tensor& b, Tensor& out, Fn fn) {
  using R = decltype(fn(T(), T()));
  constexpr DtypeSet kT = dtype_set(DtypeOf<T>::value);
  constexpr DtypeSet kR = dtype_set(DtypeOf<R>::value);
  constexpr DtypeSet kFrom = castable_from(DtypeSet{kIn}, kT);
  constexpr DtypeSet kTo = castable_to(DtypeSet{kOut}, kR);
  if constexpr ((kFrom & kT).bits != 0 && (kTo & kR).bits != 0) {
    if (a.dtype == DtypeOf<T>::value && b.dtype == DtypeOf<T>::value &&
        out.dtype == DtypeOf<R>::value) {
      StridedLoop loop = loop_over(out, a, b);
      for (; loop.valid(); loop.next()) {
        R* to = out.mutable_data<R>() + loop.offset(0);
        const T* x = a.data<T>() + loop.offset(1);
        const T* y = b.data<T>() + loop.offset(2);
        const int32_t to_step = loop.row_stride(0);
        const int32_t x_step = loop.row_stride(1);
        const int32_t y_step = loop.row_stride(2);
        int32_t left = loop.row_size();
        if constexpr (kInLanes<Fn>) {
          if (to_step == 1 && x_step == 1 && y_step == 1) {
            fn.row(x, to, left, y);
            continue;
          }
        } else if constexpr (kFavourSpeed) {
          if (to_step == 1 && x_step == 1 && y_step == 1) {
            for (int32_t i = 0; i < left; ++i) to[i] = fn(x[i], y[i]);
            continue;
          }
        }
        do {
          *to = fn(*x, *y);
          to += to_step;
          x += x_step;
          y += y_step;
        } while (--left != 0);
      }
      return Error::Ok;
    }
  }
  if constexpr (converts(kFrom, kT) || converts(kTo, kR)) {
    ORCH_CHECK(kFrom.has(a.dtype) && kFrom.has(b.dtype) && kTo.has(out.dtype),
               Error::DtypeNotSelected);
    StridedLoop loop = loop_over(out, a, b);
    for (; loop.valid(); loop.next()) {
      for (int32_t i = 0; i < loop.row_size(); ++i) {
        const T x = load_as<T, kFrom.bits>(
            a.dtype, a.memory, loop.offset(1) + i * loop.row_stride(1));
        const T y = load_as<T, kFrom.bits>(
            b.dtype, b.memory, loop.offset(2) + i * loop.row_stride(2));
        store_as<kTo.bits>(out.dtype, out.memory,
                           loop.offset(0) + i * loop.row_stride(0), fn(x, y));
      }
    }
    return Error::Ok;
  }
  return Error::DtypeNotSelected;
}

/// out = fn(a, b), computed in the dtype `common`, one of kCommon.
///
/// make(Type<T>{}) gives the function, from two T to R, for the C++ type of
/// `common`. kIn: dtypes of `a` and `b`; kOut: dtypes of `out`. Conversions are
/// made only if those sets need them. Trusts that resize_broadcast was
/// successful, that `a` and `b` may be cast to `common`, and R to `out`.
/// Errors: DtypeNotSelected.
template <uint32_t kIn, uint32_t kOut, uint32_t kCommon, typename Make>
Error map_in(ScalarType common, const Tensor& a, const Tensor& b, Tensor& out,
             Make make) {
  return switch_dtype<kCommon>(common, [&](auto type) {
    using T = typename decltype(type)::type;
    return map_as<T, kIn, kOut>(a, b, out, make(type));
  });
}

/// What `binary` checks before it computes: gives `out` its sizes and
/// returns the dtype that `a` and `b` promote to. kBits: dtypes of the three.
/// Errors: InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits>
inline Error prepare_binary(const Tensor& a, const Tensor& b, Tensor& out,
                            ScalarType& common) {
  ORCH_TRY(resize_broadcast(out, a, b));
  return common_dtype<kBits>(a, b, out, common);
}

/// out = fn(a, b), in the dtype that both promote to; make(Type<T>{}) gives the
/// function from two T to T.
///
/// kBits: dtypes of the three; kTaken: what the operator computes in. Errors:
/// InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits, uint32_t kTaken, typename Make>
Error binary(ScalarType common, const Tensor& a, const Tensor& b, Tensor& out,
             Make make) {
  constexpr DtypeSet kDtypes{kBits};
  constexpr DtypeSet kCommon = with_promoted(kDtypes) & DtypeSet{kTaken};
  return map_in<kBits, kBits, usable(kCommon, kDtypes).bits>(common, a, b, out,
                                                             make);
}
template <uint32_t kBits, uint32_t kTaken, typename Make>
Error binary(const Tensor& a, const Tensor& b, Tensor& out, Make make) {
  ScalarType common;
  ORCH_TRY(prepare_binary<kBits>(a, b, out, common));
  return binary<kBits, kTaken>(common, a, b, out, make);
}

/// out = fn(a, b) for functions of real numbers, called with two floats or two
/// doubles: any dtypes in, floats out. Integers are computed in float.
///
/// kBits: dtypes of the three. Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, typename Fn>
Error binary_floating(const Tensor& a, const Tensor& b, Tensor& out, Fn fn) {
  constexpr DtypeSet kDtypes{kBits & ~kComplex.bits};
  ORCH_CHECK(kFloating.has(out.dtype), Error::InvalidArgument);
  ScalarType common = a.dtype;
  if constexpr (!kDtypes.single()) {
    common = result_type(a, b);
    if (!kFloating.has(common)) common = ScalarType::Float;
  }
  ORCH_TRY(resize_broadcast(out, a, b));
  return map_in<kDtypes.bits, kDtypes.bits,
                usable(computed_in_floats(kDtypes), kDtypes).bits>(
      common, a, b, out, [fn](auto type) {
        using T = typename decltype(type)::type;
        return [fn](T x, T y) {
          return static_cast<T>(fn(number_of(x), number_of(y)));
        };
      });
}

/// aten::<op>.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)
///
/// out = fn(self, alpha * other), which fn gets in the type that they are
/// computed in. PyTorch rounds alpha to the dtype of the tensors, but not the
/// product. `lanes` gets alpha. Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, uint32_t kTaken, typename Fn>
Error binary_scaled(const Args& args, Fn fn, LaneFn lanes = nullptr) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  const Scalar& alpha = args.scalar(2);
  Tensor& out = args.tensor(3);
  ScalarType common;
  ORCH_TRY(prepare_binary<kBits>(self, other, out, common));
  ORCH_CHECK(alpha_fits(alpha, common), Error::InvalidArgument);
  return binary<kBits, kTaken>(common, self, other, out, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const C factor = static_cast<C>(scalar_to<T>(alpha));
    const auto scaled = [fn, factor](T a, T b) {
      return static_cast<T>(fn(static_cast<C>(a), factor * static_cast<C>(b)));
    };
    return in_lanes(type, scaled, lanes, factor);
  });
}

}  // namespace orch
