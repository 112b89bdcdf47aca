// Comparisons of tensors with tensors and with numbers: truth values, stored as
// whatever dtype the output has.
#pragma once

#include "orch/value.h"
#include "util/binary.h"
#include "util/scalar.h"
#include "util/unary.h"

namespace orch {

/// Makes `x`, one of two vectors, integers 0 and 1 in place of truth values.
/// "lt" and "le" are also true of NaN: "gt" and "ge" with the sides swapped are
/// not.
#define ORCH_COMPARE(condition, left, right, x) \
  "vpte.f32 " condition ", " left ", " right    \
  "\n"                                          \
  "vmovt.i32 " x                                \
  ", #1\n"                                      \
  "vmove.i32 " x ", #0\n"
/// The number of a LaneFn in all places of a vector.
#define ORCH_NUMBER(y) "vdup.32 " y ", r2\n"

/// aten::<op>.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out).
/// fn(x, y) -> bool gets both as numbers of the dtype that the tensors promote
/// to, as `lanes` does. kIn: dtypes of the inputs; kOut: of the output. Errors:
/// InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kIn, uint32_t kOut, typename Fn>
Error compare_tensors(const Args& args, Fn fn, LaneFn lanes = nullptr) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  Tensor& out = args.tensor(2);
  constexpr DtypeSet kDtypes{kIn};
  ORCH_TRY(resize_broadcast(out, self, other));
  ScalarType common = self.dtype;
  if constexpr (!kDtypes.single()) common = result_type(self, other);
  return map_in<kIn, kOut, with_promoted(kDtypes).bits>(
      common, self, other, out, [fn, lanes](auto type) {
        using T = typename decltype(type)::type;
        return in_lanes(
            type,
            [fn](T x, T y) -> bool { return fn(number_of(x), number_of(y)); },
            lanes);
      });
}

/// aten::<op>.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out). The
/// number is compared as the dtype that it and the tensor promote to holds it;
/// `lanes` gets it.
template <uint32_t kIn, uint32_t kOut, typename Fn>
Error compare_number(const Args& args, Fn fn, LaneFn lanes) {
  const Tensor& self = args.tensor(0);
  const Scalar& other = args.scalar(1);
  Tensor& out = args.tensor(2);
  ORCH_TRY(set_sizes(out, self.sizes()));
  return map_in<kIn, kOut, with_number(DtypeSet{kIn}).bits>(
      result_type(self.dtype, other), self, out,
      [fn, lanes, &other](auto type) {
        using T = typename decltype(type)::type;
        const auto y = number_of(scalar_to<T>(other));
        float number = 0;
        if constexpr (kIsSame<T, float>) number = y;
        return in_lanes(
            type, [fn, y](T x) -> bool { return fn(number_of(x), y); }, lanes,
            number);
      });
}

}  // namespace orch
