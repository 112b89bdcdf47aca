#include <string.h>

#include "image.h"
#include "orch/kernel.h"
#include "util/check.h"

namespace orch::cortex_m {
namespace {

/// Whether memory is seen as NHWC. Where sizes of 1 leave that open, it is.
bool is_channels_last(const Tensor& tensor) {
  Image image;
  return tensor.dim == 4 &&
         read_image(tensor, Layout::kChannelsLast, image) == Error::Ok;
}

/// Items along dimensions of the memory, outermost first.
struct Padded {
  int32_t before[4];
  int32_t in[4];
  int32_t after[4];
  int32_t out[4];
};

/// Writes the rows of the input in between.
void write_rows(const Padded& padded, const int8_t* x, int8_t* y) {
  int32_t items[4];  // in the output, of one index of a dimension
  int32_t step = 1;
  for (int i = 3; i >= 0; --i) {
    items[i] = step;
    y += padded.before[i] * step;
    step *= padded.out[i];
  }
  const int32_t row = padded.in[3];
  for (int32_t i = 0; i < padded.in[0]; ++i) {
    for (int32_t j = 0; j < padded.in[1]; ++j) {
      int8_t* to = y + (i * items[0] + j * items[1]);
      for (int32_t k = padded.in[2]; k > 0; --k) {
        memmove(to, x, static_cast<size_t>(row));
        x += row;
        to += items[2];
      }
    }
  }
}

/// The lists have four items, outermost dimension of the memory first; those of
/// a tensor of lower rank are the last ones.
Error pad(const Args& args, const bool nhwc) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(4);

  ORCH_CHECK(input.dtype == ScalarType::Char && out.dtype == ScalarType::Char &&
                 input.dim > 0 && input.dim <= 4,
             Error::InvalidArgument);
  const IntList before = args.int_list(1);
  const IntList after = args.int_list(2);
  ORCH_CHECK(before.size() == 4 && after.size() == 4, Error::InvalidArgument);
  int32_t value;
  ORCH_TRY(read_item(args, 3, value));

  Padded padded;
  ORCH_TRY(read_ints(before, 4, 0, padded.before));
  ORCH_TRY(read_ints(after, 4, 0, padded.after));

  constexpr uint8_t kNhwc[] = {0, 2, 3, 1};
  ORCH_CHECK(nhwc || input.contiguous(), Error::NotSupported);
  int32_t sizes[4];
  for (int i = 0; i < 4; ++i) {
    // In memory dimensions lie as `d` goes through them.
    const int d = nhwc ? kNhwc[i] : i - 4 + input.dim;
    padded.in[i] = d < 0 ? 1 : input.size(d);
    // Below 2^32: read_ints gives no more than 2^30.
    const uint32_t size = static_cast<uint32_t>(padded.before[i]) +
                          static_cast<uint32_t>(padded.in[i]) +
                          static_cast<uint32_t>(padded.after[i]);
    ORCH_CHECK(size <= (d < 0 ? 1 : INT32_MAX), Error::InvalidArgument);
    padded.out[i] = static_cast<int32_t>(size);
    if (d >= 0) sizes[d] = padded.out[i];
  }
  ORCH_TRY(resize_output(out, {sizes, input.dim}, input));
  const int32_t count = out.numel();
  if (count == 0) return Error::Ok;
  ORCH_CHECK(nhwc ? is_channels_last(out) : out.contiguous(),
             Error::NotSupported);
  memset(out.memory, value, static_cast<size_t>(count));
  write_rows(padded, input.data<int8_t>(), out.mutable_data<int8_t>());
  return Error::Ok;
}

}  // namespace

// cortex_m::pad.out(Tensor input, int[] pre_pad, int[] post_pad,
//   int pad_value, *, Tensor(a!) out) -> Tensor(a!)
Error pad_out(const Args& args) {
  return pad(args, is_channels_last(args.tensor(0)));
}

// cortex_m::pad_contiguous.out(Tensor input, int[] pre_pad, int[] post_pad,
//   int pad_value, *, Tensor(a!) out) -> Tensor(a!)
//
// Where sizes of 1 leave the layout open, dimensions lie in their own order.
Error pad_contiguous_out(const Args& args) { return pad(args, false); }

}  // namespace orch::cortex_m
