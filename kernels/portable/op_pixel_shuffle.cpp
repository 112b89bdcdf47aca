#include "orch/kernel.h"
#include "util/pixel_shuffle.h"

namespace orch::portable {

// aten::pixel_shuffle.out(Tensor self, int upscale_factor, *,
//   Tensor(a!) out) -> Tensor(a!)
Error pixel_shuffle_out(const Args& args) { return shuffle_pixels<true>(args); }

}  // namespace orch::portable
