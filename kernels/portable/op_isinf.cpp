#include "orch_selected/op_isinf.h"

#include "orch/kernel.h"
#include "util/classify.h"

namespace orch::portable {
namespace {

#define ORCH_ISINF(x, y) \
  "vabs.f32 " x ", " x   \
  "\n"                   \
  "vpte.f32 eq, " x      \
  ", r2\n"               \
  "vmovt.i32 " x         \
  ", #1\n"               \
  "vmove.i32 " x ", #0\n"
ORCH_LANES(isinf_lanes, ORCH_ISINF);

}  // namespace

// aten::isinf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error isinf_out(const Args& args) {
  return classify<selected::aten_isinf_out.bits>(
      args, [](auto size, auto infinity) { return size == infinity; },
      isinf_lanes);
}

}  // namespace orch::portable
