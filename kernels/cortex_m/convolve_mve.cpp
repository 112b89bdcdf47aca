// Convolution with vectors.
#include "convolve.h"
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include "areas_mve.h"

namespace orch::cortex_m {

void convolve(const Convolution& conv) {
  const Areas areas(conv);
  const int32_t x_items = conv.in.height * conv.in.width * conv.in.channels;
  const int32_t y_items = conv.out.height * conv.out.width * conv.out.channels;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    areas.compute_image(conv.x + n * x_items, conv.y + n * y_items);
  }
}

void multiply(Convolution& conv, int32_t rows, int32_t depth, int32_t columns) {
  conv.in = {1, 1, rows, depth};
  conv.out = {1, 1, rows, columns};
  conv.rows = {1, 1, 1, 1, 0, 1};
  conv.columns = {rows, rows, 1, 1, 0, 1};
  conv.group_channels = depth;
  conv.group_outputs = columns;
  if (rows == 0) return;
  Areas(conv).compute({conv.x, conv.y, 1, rows, 0, depth, 0, columns, 0,
                       runs_of(depth, 1, 0, 0), 1, 0, 0});
}

}  // namespace orch::cortex_m

#endif
