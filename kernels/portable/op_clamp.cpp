#include "orch_selected/op_clamp.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/clamp.h"
#include "util/isa.h"
#include "util/lanes.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

/// to = fn(x, y, z) for items that are `steps` apart: in `to`, x, y, z.
template <typename T, typename Fn>
ORCH_HOT void row(const T* x, const T* y, const T* z, T* to,
                  const int32_t (&steps)[4], int32_t count, Fn fn) {
  const int32_t to_step = steps[0];
  const int32_t x_step = steps[1];
  const int32_t y_step = steps[2];
  const int32_t z_step = steps[3];
  if constexpr (kInLanes<decltype(fn.raise)>) {
    if (to_step == 1 && x_step == 1 && y_step == 1 && z_step == 1) {
      const T* from = x;
      if (fn.raise.lanes != nullptr) {
        fn.raise.row(x, to, count, y);
        from = to;
      }
      if (fn.lower.lanes != nullptr) fn.lower.row(from, to, count, z);
      return;
    }
  } else if constexpr (kFavourSpeed) {
    if (to_step == 1 && x_step == 1 && y_step == 1 && z_step == 1) {
      for (int32_t i = 0; i < count; ++i) to[i] = fn(x[i], y[i], z[i]);
      return;
    }
  }
  for (; count > 0; --count) {
    *to = fn(*x, *y, *z);
    to += to_step;
    x += x_step;
    y += y_step;
    z += z_step;
  }
}

// "lt" is also true of NaN.
// clang-format off
#define ORCH_RAISE(x, y) \
  "vptt.f32 lt, " x ", " y "\n" \
  "vcmpt.f32 eq, " x ", " x "\n" \
  "vmovt " x ", " y "\n"
#define ORCH_LOWER(x, y) \
  "vpt.f32 gt, " x ", " y "\n" \
  "vmovt " x ", " y "\n" \
  "vpt.f32 ne, " y ", " y "\n" \
  "vmovt " x ", " y "\n"
// clang-format on
ORCH_LANES(raise_lanes, ORCH_RAISE);
ORCH_LANES(lower_lanes, ORCH_LOWER);

/// An item within limits.
template <typename Raise, typename Lower>
struct Within {
  Raise raise;
  Lower lower;

  template <typename T>
  T operator()(T value, T least, T most) const {
    return lower(raise(value, least), most);
  }
};
template <typename Raise, typename Lower>
Within<Raise, Lower> within(Raise raise, Lower lower) {
  return {raise, lower};
}

/// out = fn(a, b, c), broadcast, computed in T.
template <typename T, uint32_t kIn, uint32_t kOut, typename Fn>
Error map_three(const Tensor& a, const Tensor& b, const Tensor& c, Tensor& out,
                Fn fn) {
  constexpr DtypeSet kT = dtype_set(DtypeOf<T>::value);
  constexpr DtypeSet kFrom = castable_from(DtypeSet{kIn}, kT);
  constexpr DtypeSet kTo = castable_to(DtypeSet{kOut}, kT);
  const ScalarType common = DtypeOf<T>::value;
  constexpr bool kSelected = (kFrom & kT).bits != 0 && (kTo & kT).bits != 0;
  const bool same = kSelected && a.dtype == common && b.dtype == common &&
                    c.dtype == common && out.dtype == common;
  if (!same) {
    ORCH_CHECK(kFrom.has(a.dtype) && kFrom.has(b.dtype) && kFrom.has(c.dtype) &&
                   kTo.has(out.dtype),
               Error::DtypeNotSelected);
  }
  // Both go through `out` in memory order, but their rows may end elsewhere.
  StridedLoop loop = loop_over(out, a, b);
  StridedLoop other = loop_over(out, c, c);
  int32_t at = 0;
  int32_t other_at = 0;
  while (loop.valid()) {
    const int32_t left = loop.row_size() - at;
    const int32_t other_left = other.row_size() - other_at;
    const int32_t count = left < other_left ? left : other_left;
    const int32_t steps[] = {loop.row_stride(0), loop.row_stride(1),
                             loop.row_stride(2), other.row_stride(1)};
    const int32_t from[] = {
        loop.offset(0) + at * steps[0], loop.offset(1) + at * steps[1],
        loop.offset(2) + at * steps[2], other.offset(1) + other_at * steps[3]};
    if (same) {
      if constexpr (kSelected) {
        row(a.data<T>() + from[1], b.data<T>() + from[2], c.data<T>() + from[3],
            out.mutable_data<T>() + from[0], steps, count, fn);
      }
    } else if constexpr (converts(kFrom, kT) || converts(kTo, kT)) {
      for (int32_t i = 0; i < count; ++i) {
        const T x =
            load_as<T, kFrom.bits>(a.dtype, a.memory, from[1] + i * steps[1]);
        const T y =
            load_as<T, kFrom.bits>(b.dtype, b.memory, from[2] + i * steps[2]);
        const T z =
            load_as<T, kFrom.bits>(c.dtype, c.memory, from[3] + i * steps[3]);
        store_as<kTo.bits>(out.dtype, out.memory, from[0] + i * steps[0],
                           fn(x, y, z));
      }
    }
    at += count;
    other_at += count;
    if (at == loop.row_size()) {
      loop.next();
      at = 0;
    }
    if (other_at == other.row_size()) {
      other.next();
      other_at = 0;
    }
  }
  return Error::Ok;
}

}  // namespace

// aten::clamp.out(Tensor self, Scalar? min=None, Scalar? max=None, *,
//   Tensor(a!) out) -> Tensor(a!)
Error clamp_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool has_low = args.has(1);
  const bool has_high = args.has(2);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(has_low || has_high, Error::InvalidArgument);
  ScalarType common = self.dtype;
  if (has_low) common = result_type(common, args.scalar(1));
  if (has_high) common = result_type(common, args.scalar(2));
  ORCH_CHECK((!has_low || holds(common, args.scalar(1).bits())) &&
                 (!has_high || holds(common, args.scalar(2).bits())),
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_clamp_out;
  return unary_in<kDtypes.bits, (kReal | kBool).bits>(
      common, self, out, [&](auto type) {
        using T = typename decltype(type)::type;
        const T low = has_low ? scalar_to<T>(args.scalar(1)) : T();
        const T high = has_high ? scalar_to<T>(args.scalar(2)) : T();
        const auto fn = [=](T value) {
          const T raised = has_low ? at_least(value, low) : value;
          return has_high ? at_most(raised, high) : raised;
        };
        const float p0 = has_low ? static_cast<float>(low) : -__builtin_inff();
        const float p1 = has_high ? static_cast<float>(high) : __builtin_inff();
        return in_lanes(type, fn, lanes_within(p0, p1), p0, p1);
      });
}

// Prepared: floats; limits that are missing are infinite.
void clamp(const PreparedCall& prepared) {
  const auto& call = static_cast<const LimitsCall&>(prepared);
  map_prepared(call, kept_within(Type<float>{}, call.low, call.high));
}

// aten::clamp.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *,
//   Tensor(a!) out) -> Tensor(a!)
Error clamp_Tensor_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool has_low = args.has(1);
  const bool has_high = args.has(2);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(has_low || has_high, Error::InvalidArgument);
  const Tensor& low = has_low ? args.tensor(1) : self;
  const Tensor& high = has_high ? args.tensor(2) : self;
  const ScalarType common = result_type({&self, &low, &high});
  ORCH_CHECK(can_cast(common, out.dtype), Error::InvalidArgument);
  ORCH_TRY(resize_broadcast(out, self, low, high));
  constexpr DtypeSet kDtypes = selected::aten_clamp_Tensor_out;
  constexpr DtypeSet kCommon = usable(with_promoted(kDtypes), kDtypes);
  return switch_dtype<kCommon.bits>(common, [&](auto type) {
    using T = typename decltype(type)::type;
    return map_three<T, kDtypes.bits, kDtypes.bits>(
        self, low, high, out,
        within(in_lanes(
                   type,
                   [has_low](T value, T least) {
                     return has_low ? at_least(value, least) : value;
                   },
                   has_low ? raise_lanes : nullptr),
               in_lanes(
                   type,
                   [has_high](T value, T most) {
                     return has_high ? at_most(value, most) : value;
                   },
                   has_high ? lower_lanes : nullptr)));
  });
}

}  // namespace orch::portable
