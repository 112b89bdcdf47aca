#include <string.h>

#include "image.h"
#include "orch/kernel.h"
#include "prepared.h"
#include "util/check.h"

namespace orch::cortex_m {
namespace {

/// Whether memory is seen as NHWC. Where sizes of 1 leave that open, it is.
bool is_channels_last(const Tensor& tensor) {
  return tensor.dim == 4 && ImageDims(Layout::kChannelsLast).fit(tensor);
}

/// Writes the padding, and the rows of the input in between.
void write(const PadCall& call) {
  int8_t* y = static_cast<int8_t*>(call.out);
  memset(y, call.value, static_cast<size_t>(call.bytes));
  y += call.before;
  const int8_t* x = static_cast<const int8_t*>(call.input);
  for (int32_t i = 0; i < call.sizes[0]; ++i) {
    for (int32_t j = 0; j < call.sizes[1]; ++j) {
      int8_t* to = y + (i * call.steps[0] + j * call.steps[1]);
      for (int32_t k = call.sizes[2]; k > 0; --k) {
        memmove(to, x, static_cast<size_t>(call.row));
        x += call.row;
        to += call.steps[2];
      }
    }
  }
}

/// The lists have four items, outermost dimension of the memory first; those of
/// a tensor of lower rank are the last ones.
Error run(const Args& args, const bool nhwc) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(4);

  ORCH_CHECK(input.dtype == ScalarType::Char && out.dtype == ScalarType::Char &&
                 input.dim > 0 && input.dim <= 4,
             Error::InvalidArgument);
  const IntList before = args.int_list(1);
  const IntList after = args.int_list(2);
  ORCH_CHECK(before.size() == 4 && after.size() == 4, Error::InvalidArgument);
  PadCall call;
  ORCH_TRY(read_item(args, 3, call.value));

  int32_t first[4];
  int32_t last[4];
  ORCH_TRY(read_ints(before, 4, 0, first));
  ORCH_TRY(read_ints(after, 4, 0, last));

  constexpr uint8_t kNhwc[] = {0, 2, 3, 1};
  ORCH_CHECK(nhwc || input.contiguous(), Error::NotSupported);
  int32_t sizes[4];
  int32_t in[4];
  int32_t padded[4];
  for (int i = 0; i < 4; ++i) {
    // In memory dimensions lie as `d` goes through them.
    const int d = nhwc ? kNhwc[i] : i - 4 + input.dim;
    in[i] = d < 0 ? 1 : input.size(d);
    // Below 2^32: read_ints gives no more than 2^30.
    const uint32_t size = static_cast<uint32_t>(first[i]) +
                          static_cast<uint32_t>(in[i]) +
                          static_cast<uint32_t>(last[i]);
    ORCH_CHECK(size <= (d < 0 ? 1 : INT32_MAX), Error::InvalidArgument);
    padded[i] = static_cast<int32_t>(size);
    if (d >= 0) sizes[d] = padded[i];
  }
  ORCH_TRY(resize_output(out, {sizes, input.dim}, input));
  const int32_t count = out.numel();
  if (count == 0) return Error::Ok;
  ORCH_CHECK(nhwc ? is_channels_last(out) : out.contiguous(),
             Error::NotSupported);
  call.input = input.memory;
  call.out = out.memory;
  call.bytes = count;
  call.before = 0;
  call.row = in[3];
  int32_t step = 1;  // items in the output, of one index of a dimension
  for (int i = 3; i >= 0; --i) {
    call.before += first[i] * step;
    if (i < 3) {
      call.sizes[i] = in[i];
      call.steps[i] = step;
    }
    step *= padded[i];
  }
  write(call);
  return Error::Ok;
}

}  // namespace

// cortex_m::pad.out(Tensor input, int[] pre_pad, int[] post_pad,
//   int pad_value, *, Tensor(a!) out) -> Tensor(a!)
Error pad_out(const Args& args) {
  return run(args, is_channels_last(args.tensor(0)));
}

// cortex_m::pad_contiguous.out(Tensor input, int[] pre_pad, int[] post_pad,
//   int pad_value, *, Tensor(a!) out) -> Tensor(a!)
//
// Where sizes of 1 leave the layout open, dimensions lie in their own order.
Error pad_contiguous_out(const Args& args) { return run(args, false); }

void pad(const PreparedCall& call) { write(static_cast<const PadCall&>(call)); }

}  // namespace orch::cortex_m
