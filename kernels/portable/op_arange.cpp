#include "orch_selected/op_arange.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/scalar.h"
#include "util/truncate.h"

namespace orch::portable {
namespace {

/// The integer that PyTorch makes of a number where the output has integers.
/// Errors: InvalidArgument, if 64 bits do not hold it.
[[maybe_unused]] Error whole_number(const Scalar& number, int64_t& value) {
  value = number.bits();
  if (!number.is_floating()) return Error::Ok;
  const double x = number.as_double();
  ORCH_CHECK(x >= -0x1p63 && x < 0x1p63, Error::InvalidArgument);
  value = truncate_wide(x);
  return Error::Ok;
}

/// How many integers lie from `start` to before `end`: exact. Errors:
/// InvalidArgument, ShapeTooLarge.
[[maybe_unused]] Error count_whole(int64_t start, int64_t end, int64_t step,
                                   int32_t& count) {
  ORCH_CHECK(step > 0 ? start <= end : step < 0 && start >= end,
             Error::InvalidArgument);
  const uint64_t first = static_cast<uint64_t>(start);
  const uint64_t last = static_cast<uint64_t>(end);
  const uint64_t by = static_cast<uint64_t>(step);
  const uint64_t distance = step > 0 ? last - first : first - last;
  const uint64_t size = step > 0 ? by : uint64_t{0} - by;
  const uint64_t steps = distance / size + (distance % size != 0 ? 1 : 0);
  ORCH_CHECK(steps <= kMaxExtent, Error::ShapeTooLarge);
  count = static_cast<int32_t>(steps);
  return Error::Ok;
}

/// The same for floats. Errors: InvalidArgument, ShapeTooLarge.
Error count_steps(double start, double end, double step, int32_t& count) {
  ORCH_CHECK(start - start == 0 && end - end == 0, Error::InvalidArgument);
  ORCH_CHECK(step > 0 ? start <= end : step < 0 && start >= end,
             Error::InvalidArgument);
  const double size = (end - start) / step;
  ORCH_CHECK(size <= kMaxExtent, Error::ShapeTooLarge);
  count = static_cast<int32_t>(size);
  if (count < size) ++count;
  return Error::Ok;
}

/// start + i * step for every item: integers modulo 2^64, floats in double and
/// rounded once.
template <uint32_t kBits>
Error arange(const Scalar& start, const Scalar& end, const Scalar& step,
             Tensor& out) {
  constexpr DtypeSet kDtypes{kBits};
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  const bool as_floats = kFloating.has(out.dtype);
  const bool exact = !as_floats && !start.is_floating() && !end.is_floating() &&
                     !step.is_floating();
  int32_t count = 0;
  if (!exact) {
    ORCH_TRY(count_steps(start.to_double(), end.to_double(), step.to_double(),
                         count));
  }
  if constexpr ((kDtypes & kFloating).bits != 0) {
    if (as_floats) {
      ORCH_TRY(resize_output(out, {&count, 1}));
      const double first = start.to_double();
      const double by = step.to_double();
      return switch_dtype<(kDtypes & kFloating).bits>(
          out.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            T* to = out.mutable_data<T>();
            for (int32_t i = 0; i < count; ++i) {
              to[i] = convert<T>(first + i * by);
            }
            return Error::Ok;
          });
    }
  }
  if constexpr ((kDtypes & kIntegral).bits != 0) {
    int64_t first = 0;
    int64_t last = 0;
    int64_t by = 0;
    ORCH_TRY(whole_number(start, first));
    ORCH_TRY(whole_number(end, last));
    ORCH_TRY(whole_number(step, by));
    // As in PyTorch, floats count as they are where the output is not Long.
    if (exact || out.dtype == ScalarType::Long) {
      ORCH_TRY(count_whole(first, last, by, count));
    }
    ORCH_TRY(resize_output(out, {&count, 1}));
    return switch_dtype<(kDtypes & kIntegral).bits>(out.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      T* to = out.mutable_data<T>();
      uint64_t value = static_cast<uint64_t>(first);
      for (int32_t left = count; left > 0; --left) {
        *to++ = static_cast<T>(value);
        value += static_cast<uint64_t>(by);
      }
      return Error::Ok;
    });
  }
  return Error::DtypeNotSelected;
}

}  // namespace

// aten::arange.out(Scalar end, *, Tensor(a!) out) -> Tensor(a!)
Error arange_out(const Args& args) {
  constexpr Scalar kZero = {Tag::Int, {0, 0}};
  constexpr Scalar kOne = {Tag::Int, {1, 0}};
  return arange<selected::aten_arange_out.bits>(kZero, args.scalar(0), kOne,
                                                args.tensor(1));
}

// aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *,
//   Tensor(a!) out) -> Tensor(a!)
Error arange_start_out(const Args& args) {
  return arange<selected::aten_arange_start_out.bits>(
      args.scalar(0), args.scalar(1), args.scalar(2), args.tensor(3));
}

}  // namespace orch::portable
