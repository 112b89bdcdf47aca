#include "orch_selected/op_arange.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

constexpr DtypeSet kDtypes = selected::aten_arange_start_out;

Error resize_to(Tensor& out, int32_t count) {
  return resize_output(out, {&count, 1});
}

/// Integers: exact, as far as 64 bits hold them.
Error count_up(const Args& args, Tensor& out) {
  const int64_t start = args.scalar(0).bits();
  const int64_t end = args.scalar(1).bits();
  const int64_t step = args.scalar(2).bits();
  // PyTorch truncates those.
  for (int i = 0; i < 3; ++i) {
    ORCH_CHECK(!args.scalar(i).is_floating(), Error::NotSupported);
  }
  ORCH_CHECK(step > 0 ? start <= end : step < 0 && start >= end,
             Error::InvalidArgument);
  const uint64_t first = static_cast<uint64_t>(start);
  const uint64_t last = static_cast<uint64_t>(end);
  const uint64_t by = static_cast<uint64_t>(step);
  const uint64_t distance = step > 0 ? last - first : first - last;
  const uint64_t size = step > 0 ? by : uint64_t{0} - by;
  const uint64_t count = distance / size + (distance % size != 0 ? 1 : 0);
  ORCH_CHECK(count <= kMaxExtent, Error::ShapeTooLarge);
  ORCH_TRY(resize_to(out, static_cast<int32_t>(count)));
  return switch_dtype<(kDtypes & kIntegral).bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = out.mutable_data<T>();
    uint64_t value = first;
    for (uint64_t left = count; left > 0; --left, value += by) {
      *to++ = static_cast<T>(value);
    }
    return Error::Ok;
  });
}

/// Floats: start + i * step in double, rounded once.
Error step_up(const Args& args, Tensor& out) {
  const double start = args.number(0);
  const double end = args.number(1);
  const double step = args.number(2);
  ORCH_CHECK(start - start == 0 && end - end == 0, Error::InvalidArgument);
  ORCH_CHECK(step > 0 ? start <= end : step < 0 && start >= end,
             Error::InvalidArgument);
  const double size = (end - start) / step;
  ORCH_CHECK(size <= kMaxExtent, Error::ShapeTooLarge);
  int32_t count = static_cast<int32_t>(size);
  if (count < size) ++count;
  ORCH_TRY(resize_to(out, count));
  return switch_dtype<(kDtypes & kFloating).bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = out.mutable_data<T>();
    for (int32_t i = 0; i < count; ++i) to[i] = convert<T>(start + i * step);
    return Error::Ok;
  });
}

}  // namespace

// aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *,
//   Tensor(a!) out) -> Tensor(a!)
Error arange_start_out(const Args& args) {
  Tensor& out = args.tensor(3);
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  if constexpr ((kDtypes & kFloating).bits != 0) {
    if (kFloating.has(out.dtype)) return step_up(args, out);
  }
  if constexpr ((kDtypes & kIntegral).bits != 0) return count_up(args, out);
  return Error::DtypeNotSelected;
}

}  // namespace orch::portable
