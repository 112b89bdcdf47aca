#include "orch_selected/op_clamp.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

/// Whether a limit is a number of `dtype`; floats hold all, rounded.
bool is_within(const Scalar& limit, ScalarType dtype) {
  if (kFloating.has(dtype)) return true;
  const int64_t value = limit.bits();
  if (dtype == ScalarType::Byte) return value >= 0 && value <= UINT8_MAX;
  const int bits = 8 * static_cast<int>(item_bytes(dtype)) - 1;
  return value >> bits == 0 || value >> bits == -1;
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
  ORCH_CHECK((!has_low || is_within(args.scalar(1), common)) &&
                 (!has_high || is_within(args.scalar(2), common)),
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_clamp_out;
  return unary_in<kDtypes.bits, kReal.bits>(common, self, out, [&](auto type) {
    using T = typename decltype(type)::type;
    const T low = has_low ? scalar_to<T>(args.scalar(1)) : T();
    const T high = has_high ? scalar_to<T>(args.scalar(2)) : T();
    // NaN stays NaN, as value and as limit; the upper limit wins.
    return [=](T value) {
      const auto number = number_of(value);
      if (is_nan(number)) return value;
      T limited = value;
      if (has_low && !(number >= number_of(low))) limited = low;
      const auto raised = number_of(limited);
      if (has_high && !(raised <= number_of(high)) && !is_nan(raised)) {
        limited = high;
      }
      return limited;
    };
  });
}

}  // namespace orch::portable
