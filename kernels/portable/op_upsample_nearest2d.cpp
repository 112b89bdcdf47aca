#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {
namespace {

/// How an image dimension is scaled.
struct Axis {
  int32_t in;
  int32_t out;
  float step;  // from an output item to the next, in input items
};

/// The input item nearest to an output item, rounded down.
int32_t nearest(const Axis& axis, int32_t index) {
  const float at = static_cast<float>(index) * axis.step;
  const int32_t whole = at < 0x1p30F ? static_cast<int32_t>(at) : kMaxExtent;
  return whole < axis.in ? whole : axis.in - 1;
}

/// An axis of which the output size is given. Errors: InvalidArgument.
Error set_size(Axis& axis, int64_t size) {
  ORCH_TRY(read_int(size, 1, axis.out));
  axis.step = static_cast<float>(axis.in) / static_cast<float>(axis.out);
  return Error::Ok;
}

/// An axis of which the factor is given. Errors: InvalidArgument.
Error set_factor(Axis& axis, double factor) {
  const double size = static_cast<double>(axis.in) * factor;
  // Also false for NaN.
  ORCH_CHECK(size >= 1 && size <= kMaxExtent, Error::InvalidArgument);
  axis.out = static_cast<int32_t>(size);
  axis.step = static_cast<float>(1 / factor);
  return Error::Ok;
}

}  // namespace

// aten::upsample_nearest2d.vec_out(Tensor input, SymInt[]? output_size,
//   float[]? scale_factors, *, Tensor(a!) out) -> Tensor(a!)
Error upsample_nearest2d_vec_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(input.dtype == out.dtype && input.dim == 4,
             Error::InvalidArgument);
  // One of the two says how large the output is.
  ORCH_CHECK(args.has(1) != args.has(2), Error::InvalidArgument);
  Axis axes[2];
  for (int i = 0; i < 2; ++i) {
    axes[i].in = input.size(2 + i);
    ORCH_CHECK(axes[i].in > 0, Error::InvalidArgument);
    if (args.has(1)) {
      const IntList sizes = args.int_list(1);
      ORCH_CHECK(sizes.size() == 2, Error::InvalidArgument);
      ORCH_TRY(set_size(axes[i], sizes[i]));
    } else {
      const Span<const double> factors = args.double_list(2);
      ORCH_CHECK(factors.size() == 2, Error::InvalidArgument);
      ORCH_TRY(set_factor(axes[i], factors[static_cast<size_t>(i)]));
    }
  }
  const int32_t sizes[] = {input.size(0), input.size(1), axes[0].out,
                           axes[1].out};
  ORCH_TRY(resize_output(out, sizes, input));

  const Strides from(input);
  const Strides to(out);
  StridedLoop planes;
  for (int i = 0; i < 2; ++i) planes.add(sizes[i], to[i], from[i]);
  if (!planes.valid()) return Error::Ok;
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  for (int32_t y = 0; y < axes[0].out; ++y) {
    const int32_t row = nearest(axes[0], y) * from[2];
    for (int32_t x = 0; x < axes[1].out; ++x) {
      const int32_t source = row + nearest(axes[1], x) * from[3];
      const int32_t target = y * to[2] + x * to[3];
      move_rows(planes, input.data<uint8_t>() + source * bytes,
                out.mutable_data<uint8_t>() + target * bytes, out.dtype);
      planes.restart();
    }
  }
  return Error::Ok;
}

}  // namespace orch::portable
