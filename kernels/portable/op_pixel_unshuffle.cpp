#include "orch/kernel.h"
#include "util/pixel_shuffle.h"

namespace orch::portable {

// aten::pixel_unshuffle.out(Tensor self, int downscale_factor, *,
//   Tensor(a!) out) -> Tensor(a!)
Error pixel_unshuffle_out(const Args& args) {
  return shuffle_pixels<false>(args);
}

}  // namespace orch::portable
