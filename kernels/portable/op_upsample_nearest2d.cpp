#include "orch/kernel.h"
#include "util/check.h"
#include "util/interpolate.h"
#include "util/move_items.h"

namespace orch::portable {
namespace {

/// The input item nearest to an output item, rounded down.
int32_t nearest(const ScaledAxis& axis, float scale, int32_t index) {
  const float at = static_cast<float>(index) * scale;
  const int32_t whole = at < 0x1p30F ? static_cast<int32_t>(at) : kMaxExtent;
  return whole < axis.in ? whole : axis.in - 1;
}

}  // namespace

// aten::upsample_nearest2d.vec_out(Tensor input, SymInt[]? output_size,
//   float[]? scale_factors, *, Tensor(a!) out) -> Tensor(a!)
Error upsample_nearest2d_vec_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(3);

  ScaledAxis axes[2];
  ORCH_TRY(scale_images(input, args, 1, 2, false, axes, out));
  const Strides from(input);
  const Strides to(out);
  StridedLoop planes = loop_over_images(out, to, from);
  if (!planes.valid()) return Error::Ok;
  const float scale_y = scale_of<float>(axes[0]);
  const float scale_x = scale_of<float>(axes[1]);
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  for (int32_t y = 0; y < axes[0].out; ++y) {
    const int32_t row = nearest(axes[0], scale_y, y) * from[2];
    for (int32_t x = 0; x < axes[1].out; ++x) {
      const int32_t source = row + nearest(axes[1], scale_x, x) * from[3];
      const int32_t target = y * to[2] + x * to[3];
      move_rows(planes, input.data<uint8_t>() + source * bytes,
                out.mutable_data<uint8_t>() + target * bytes, out.dtype);
      planes.restart();
    }
  }
  return Error::Ok;
}

}  // namespace orch::portable
