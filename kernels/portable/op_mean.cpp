#include "orch_selected/op_mean.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/reduce.h"
#include "util/scalar.h"
#include "util/sum.h"

namespace orch::portable {
namespace {

/// A sum of integers that never wraps around: high * 2^64 + low.
struct WideSum {
  uint64_t low = 0;
  int64_t high = 0;

  void add(int64_t value) {
    const uint64_t before = low;
    low += static_cast<uint64_t>(value);
    high += (value < 0 ? -1 : 0) + (low < before ? 1 : 0);
  }

  /// Rounded once.
  template <typename C>
  C as() const {
    uint64_t rest = low;
    int64_t above = high;
    C scale = 1;
    while (above != static_cast<int64_t>(rest) >> 63) {
      // As in float_from_int: a bit that is lost makes the number odd.
      rest = rest >> 1 | (rest & 1) | static_cast<uint64_t>(above) << 63;
      above >>= 1;
      scale *= 2;
    }
    return from_int<C>(static_cast<int64_t>(rest)) * scale;
  }
};

/// The sum of integers, of dtypes kBits, that go into one result.
template <uint32_t kBits>
__attribute__((noinline)) WideSum sum_integers(const Tensor& self,
                                               int32_t first,
                                               StridedLoop& items) {
  WideSum sum;
  for (; items.valid(); items.next()) {
    int32_t at = first + items.offset(0);
    for (int32_t left = items.row_size(); left > 0; --left) {
      sum.add(load_as<int64_t, kBits>(self.dtype, self.memory, at));
      at += items.row_stride(0);
    }
  }
  return sum;
}

/// The sum of floats in the type C, as items of type T before, as in PyTorch;
/// their dtype is that of T, or one of kBits.
template <typename C, typename T, uint32_t kBits>
C sum_floats(const Tensor& self, int32_t first, StridedLoop& items) {
  if constexpr (!DtypeSet{kBits}.single()) {
    if (self.dtype != DtypeOf<T>::value) {
      return sum_of_items<C>(
          [&self, first](int32_t at) {
            return static_cast<C>(
                load_as<T, kBits>(self.dtype, self.memory, first + at));
          },
          items);
    }
  }
  return sum_of_items<C>(ItemsOf<T>{self.data<T>() + first}, items);
}

/// Means over the dimensions of a set. `has_dtype`: whether the call names the
/// dtype of the output, without which it has no means of integers.
///
/// Integers are summed exactly, floats in the type that the output is computed
/// in. Only floats are rounded to the dtype of the output before.
template <uint32_t kBits>
Error mean(const Tensor& self, unsigned dims, bool keepdim, bool has_dtype,
           Tensor& out) {
  constexpr DtypeSet kDtypes{kBits};
  constexpr DtypeSet kFloats = kDtypes & kFloating;
  constexpr DtypeSet kWhole = kDtypes & (kIntegral | kBool);
  const bool floats = kFloating.has(self.dtype);
  Reduction reduction;
  ORCH_CHECK(kFloating.has(out.dtype), Error::InvalidArgument);
  ORCH_CHECK(has_dtype || floats, Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  ORCH_TRY(prepare_reduction(self, dims, keepdim, out, reduction));
  StridedLoop& kept = reduction.kept;
  StridedLoop& items = reduction.items;
  return switch_dtype<kFloats.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const C count = static_cast<C>(reduction.count);
    for (; kept.valid(); kept.next()) {
      for (int32_t i = 0; i < kept.row_size(); ++i) {
        const int32_t first = kept.offset(1) + i * kept.row_stride(1);
        C sum = 0;
        if (floats) {
          sum = sum_floats<C, T, kFloats.bits>(self, first, items);
        } else if constexpr (kWhole.bits != 0) {
          sum = sum_integers<kWhole.bits>(self, first, items).template as<C>();
        }
        if (reduction.count != 0) items.restart();
        out.mutable_data<T>()[kept.offset(0) + i * kept.row_stride(0)] =
            convert<T>(sum / count);
      }
    }
    return Error::Ok;
  });
}

}  // namespace

// aten::mean.out(Tensor self, int[1]? dim, bool keepdim=False, *,
//   ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)
Error mean_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(4);

  unsigned dims = 0;
  ORCH_TRY(read_reduced_dims(args, 1, self, dims));
  ORCH_TRY(check_out_dtype(args, 3, out));
  return mean<selected::aten_mean_out.bits>(self, dims, args.boolean(2),
                                            args.has(3), out);
}

// aten::mean.dtype_out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out)
//   -> Tensor(a!)
Error mean_dtype_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  ORCH_TRY(check_out_dtype(args, 1, out));
  return mean<selected::aten_mean_dtype_out.bits>(self, (1U << self.dim) - 1,
                                                  false, args.has(1), out);
}

}  // namespace orch::portable
