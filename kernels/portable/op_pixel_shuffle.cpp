#include "orch/kernel.h"
#include "util/pixel_shuffle.h"

namespace orch::portable {

// aten::pixel_shuffle.out(Tensor self, int upscale_factor, *, Tensor(a!) out)
//   -> Tensor(a!)
Error pixel_shuffle_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  int32_t factor = 0;
  ORCH_CHECK(self.dtype == out.dtype && self.dim >= 3, Error::InvalidArgument);
  ORCH_TRY(read_int(args.integer(1), 1, factor));
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  int32_t* const image = sizes + self.dim - 3;  // channels, height, width
  for (int i = 0; i < 2; ++i) {
    ORCH_CHECK(image[0] % factor == 0, Error::InvalidArgument);
    image[0] /= factor;
    ORCH_TRY(enlarge(image[1 + i], factor));
  }
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));
  move_blocks(self, out, factor, true);
  return Error::Ok;
}

}  // namespace orch::portable
