#include <string.h>

#include "orch/kernel.h"
#include "prepared.h"
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

/// Images whose columns lie side by side in `out`; the items of a row that is
/// repeated are those above.
void repeat_rows(const ScaledAxis* axes, float scale_y, float scale_x,
                 const Tensor& input, const Strides& from, Tensor& out,
                 const Strides& to, StridedLoop& planes) {
  constexpr int32_t kColumns = 32;
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  int32_t at[kColumns];
  for (int32_t x = 0; x < axes[1].out; x += kColumns) {
    const int32_t left = axes[1].out - x;
    const int32_t count = left < kColumns ? left : kColumns;
    for (int32_t i = 0; i < count; ++i) {
      at[i] = nearest(axes[1], scale_x, x + i) * from[3];
    }
    for (; planes.valid(); planes.next()) {
      for (int32_t n = 0; n < planes.row_size(); ++n) {
        const int32_t plane = planes.offset(1) + n * planes.row_stride(1);
        uint8_t* target =
            out.mutable_data<uint8_t>() +
            (planes.offset(0) + n * planes.row_stride(0) + x) * bytes;
        int32_t above = -1;
        for (int32_t y = 0; y < axes[0].out; ++y, target += to[2] * bytes) {
          const int32_t row = nearest(axes[0], scale_y, y);
          if (row == above) {
            memcpy(target, target - to[2] * bytes,
                   static_cast<size_t>(count * bytes));
            continue;
          }
          above = row;
          gather_row(input.data<uint8_t>() + (plane + row * from[2]) * bytes,
                     at, count, target, out.dtype);
        }
      }
    }
    planes.restart();
  }
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
  if (to[3] == 1) {
    repeat_rows(axes, scale_y, scale_x, input, from, out, to, planes);
    return Error::Ok;
  }
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

// Prepared: channels last, one image.
void upsample_nearest2d(const PreparedCall& prepared) {
  const auto& call = static_cast<const ScaleCall&>(prepared);
  const ScaledAxis rows = {call.rows.in, call.rows.out, false, 0};
  const ScaledAxis columns = {call.columns.in, call.columns.out, false, 0};
  const int32_t bytes = call.pixel_size;
  const uint8_t* const input = static_cast<const uint8_t*>(call.input);
  uint8_t* to = static_cast<uint8_t*>(call.out);
  for (int32_t h = 0; h < call.count; ++h) {
    const int32_t row = nearest(rows, call.rows.scale, call.first + h);
    const uint8_t* const from =
        input + (row - call.in_first) * columns.in * bytes;
    for (int32_t w = 0; w < columns.out; ++w, to += bytes) {
      memcpy(to, from + nearest(columns, call.columns.scale, w) * bytes,
             static_cast<size_t>(bytes));
    }
  }
}

}  // namespace orch::portable
