#include "orch_selected/op_isnan.h"

#include "orch/kernel.h"
#include "util/classify.h"

namespace orch::portable {
namespace {

#define ORCH_ISNAN(x, y)   \
  "vpte.f32 ne, " x ", " x \
  "\n"                     \
  "vmovt.i32 " x           \
  ", #1\n"                 \
  "vmove.i32 " x ", #0\n"
ORCH_LANES(isnan_lanes, ORCH_ISNAN);

}  // namespace

// aten::isnan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error isnan_out(const Args& args) {
  return classify<selected::aten_isnan_out.bits>(
      args, [](auto size, auto infinity) { return size > infinity; },
      isnan_lanes);
}

}  // namespace orch::portable
