#include "orch_selected/op_relu.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

// "lt" is also true of NaN.
// clang-format off
#define ORCH_RELU(x, y) \
  "vptt.f32 lt, " x ", zr\n" \
  "vcmpt.f32 eq, " x ", " x "\n" \
  "veort " x ", " x ", " x "\n"
// clang-format on
ORCH_LANES(relu_lanes, ORCH_RELU);
}  // namespace

// aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error relu_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  constexpr DtypeSet kDtypes = selected::aten_relu_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    // Not greater than 0 would lose NaN.
    map_unary<T>(
        self, out,
        in_lanes(
            type, [](T value) { return is_negative(value) ? T(0) : value; },
            relu_lanes));
    return Error::Ok;
  });
}

}  // namespace orch::portable
