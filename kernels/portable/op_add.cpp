#include "orch_selected/op_add.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/broadcast.h"
#include "util/dtype.h"
#include "util/lanes.h"
#include "util/number.h"
#include "util/promote.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

#define ORCH_ADD(x, y) "vadd.f32 " x ", " x ", r2\n"
// clang-format off
#define ORCH_ADD_SCALED(x, y) \
  "vmul.f32 " y ", " y ", r2\n" \
  "vadd.f32 " x ", " x ", " y "\n"
// clang-format on
ORCH_LANES(add_lanes, ORCH_ADD);
ORCH_LANES(add_scaled_lanes, ORCH_ADD_SCALED);
#define ORCH_ADD_PAIR(x, y) "vadd.f32 " x ", " x ", " y "\n"
ORCH_LANES(add_pair_lanes, ORCH_ADD_PAIR);

auto sum_of_floats() {
  return in_lanes(
      Type<float>{}, [](float a, float b) { return a + b; }, add_pair_lanes);
}

constexpr DtypeSet kDtypes = selected::aten_add_out;

template <typename T>
T add(T a, T b, Compute<T> alpha) {
  using C = Compute<T>;
  return static_cast<T>(static_cast<C>(a) + alpha * static_cast<C>(b));
}

/// PyTorch rounds alpha to the dtype of the tensors.
template <typename T>
Compute<T> alpha_as(const Scalar& alpha) {
  return static_cast<Compute<T>>(static_cast<T>(scalar_as<T>(alpha)));
}

template <typename T>
Error add_same(const Tensor& self, const Tensor& other, const Scalar& alpha,
               Tensor& out) {
  const Compute<T> factor = alpha_as<T>(alpha);
  const auto fn = in_lanes(
      Type<T>{}, [factor](T a, T b) { return add<T>(a, b, factor); },
      add_scaled_lanes, factor);
  constexpr uint32_t kT = dtype_set(DtypeOf<T>::value).bits;
  return map_as<T, kT, kT>(self, other, out, fn);
}

/// Arguments of different dtypes: T is the one they promote to.
template <typename T>
Error add_mixed(const Tensor& self, const Tensor& other, const Scalar& alpha,
                Tensor& out) {
  constexpr DtypeSet kT = dtype_set(DtypeOf<T>::value);
  constexpr uint32_t kFrom = castable_from(kDtypes, kT).bits;
  constexpr uint32_t kTo = castable_to(kDtypes, kT).bits;
  const Compute<T> factor = alpha_as<T>(alpha);
  StridedLoop loop = loop_over(out, self, other);
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      const T a = load_as<T, kFrom>(self.dtype, self.memory,
                                    loop.offset(1) + i * loop.row_stride(1));
      const T b = load_as<T, kFrom>(other.dtype, other.memory,
                                    loop.offset(2) + i * loop.row_stride(2));
      store_as<kTo>(out.dtype, out.memory,
                    loop.offset(0) + i * loop.row_stride(0),
                    add<T>(a, b, factor));
    }
  }
  return Error::Ok;
}

}  // namespace

// aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)
//   -> Tensor(a!)
Error add_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  const Scalar& alpha = args.scalar(2);
  Tensor& out = args.tensor(3);

  ORCH_TRY(resize_broadcast(out, self, other));
  if (self.dtype == other.dtype && self.dtype == out.dtype) {
    ORCH_CHECK(alpha_fits(alpha, out.dtype), Error::InvalidArgument);
    return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
      return add_same<typename decltype(type)::type>(self, other, alpha, out);
    });
  }
  if constexpr (!kDtypes.single()) {
    if constexpr ((kDtypes & kComplex).bits != 0) {
      ORCH_CHECK(!kComplex.has(self.dtype) && !kComplex.has(other.dtype) &&
                     !kComplex.has(out.dtype),
                 Error::InvalidArgument);
    }
    const ScalarType common = result_type(self, other);
    ORCH_CHECK(can_cast(common, out.dtype) && alpha_fits(alpha, common),
               Error::InvalidArgument);
    ORCH_CHECK(kDtypes.has(self.dtype) && kDtypes.has(other.dtype) &&
                   kDtypes.has(out.dtype),
               Error::DtypeNotSelected);
    return switch_dtype<with_promoted(kDtypes).bits>(common, [&](auto type) {
      return add_mixed<typename decltype(type)::type>(self, other, alpha, out);
    });
  }
  return Error::DtypeNotSelected;
}

// aten::add.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *,
//   Tensor(a!) out) -> Tensor(a!)
Error add_Scalar_out(const Args& args) {
  constexpr DtypeSet kNumber = selected::aten_add_Scalar_out;
  return with_scaled_number<kNumber.bits, (kReal | kBool).bits>(
      args,
      [](auto item, auto number, auto alpha) { return item + alpha * number; },
      add_lanes);
}

// Prepared: floats with an alpha of 1, of rows that lie side by side or not, or
// and a number.
void add(const PreparedCall& call) {
  map_prepared_pairs<false>(call, sum_of_floats());
}

void add_rows(const PreparedCall& call) {
  map_prepared_pairs<true>(call, sum_of_floats());
}

void add_number(const PreparedCall& prepared) {
  const auto& call = static_cast<const NumberCall&>(prepared);
  const float number = call.number;
  map_prepared(
      call, in_lanes(
                Type<float>{}, [number](float item) { return item + number; },
                add_lanes, number));
}

}  // namespace orch::portable
