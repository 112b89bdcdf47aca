#include <string.h>

#include "image.h"
#include "orch/kernel.h"
#include "util/check.h"

namespace orch::cortex_m {
namespace {

/// Items along one dimension of the memory, outermost first.
struct Padded {
  int32_t before;
  int32_t in;
  int32_t after;
};

/// Whether memory is seen as NHWC. Where sizes of 1 leave that open, it is.
bool is_channels_last(const Tensor& tensor) {
  if (tensor.dim != 4) return false;
  if (tensor.size(1) == 1) return true;
  if (tensor.size(2) == 1 && tensor.size(3) == 1) return true;
  constexpr uint8_t kOrder[] = {0, 2, 3, 1};
  return memcmp(tensor.order(), kOrder, sizeof kOrder) == 0;
}

/// Writes the rows of the input in between. `items`: in the output, of one
/// index of a dimension.
void write_rows(const Padded* padded, const int32_t* items, const int8_t* x,
                int8_t* y) {
  for (int i = 0; i < 4; ++i) y += padded[i].before * items[i];
  const int32_t row = padded[3].in;
  for (int32_t i = 0; i < padded[0].in; ++i) {
    for (int32_t j = 0; j < padded[1].in; ++j) {
      int8_t* to = y + (i * items[0] + j * items[1]);
      for (int32_t k = padded[2].in; k > 0; --k) {
        memcpy(to, x, static_cast<size_t>(row));
        x += row;
        to += items[2];
      }
    }
  }
}

}  // namespace

// cortex_m::pad.out(Tensor input, int[] pre_pad, int[] post_pad,
//   int pad_value, *, Tensor(a!) out) -> Tensor(a!)
//
// The lists have four items, outermost dimension of the memory first; those of
// a tensor of lower rank are the last ones.
Error pad_out(const Args& args) {
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

  constexpr uint8_t kNhwc[] = {0, 2, 3, 1};
  const bool nhwc = is_channels_last(input);
  const int missing = 4 - input.dim;
  Padded padded[4] = {};
  int32_t sizes[4] = {};
  for (int i = 0; i < 4; ++i) {
    ORCH_TRY(read_int(before[i], 0, padded[i].before));
    ORCH_TRY(read_int(after[i], 0, padded[i].after));
    padded[i].in = 1;
    if (i < missing) {
      ORCH_CHECK(padded[i].before == 0 && padded[i].after == 0,
                 Error::InvalidArgument);
      continue;
    }
    const int d = nhwc ? kNhwc[i] : i - missing;
    // In memory dimensions lie as `d` goes through them.
    ORCH_CHECK(nhwc || input.order()[d] == d, Error::NotSupported);
    padded[i].in = input.size(d);
    const int64_t size =
        int64_t{padded[i].before} + padded[i].in + padded[i].after;
    ORCH_CHECK(size <= INT32_MAX, Error::InvalidArgument);
    sizes[d] = static_cast<int32_t>(size);
  }
  ORCH_TRY(resize_output(out, {sizes, input.dim}, input));
  if (out.numel() == 0) return Error::Ok;
  ORCH_CHECK(nhwc ? is_channels_last(out) : out.contiguous(),
             Error::NotSupported);

  int32_t items[4] = {1, 1, 1, 1};
  for (int i = 2; i >= 0; --i) {
    const Padded& inner = padded[i + 1];
    items[i] = items[i + 1] * (inner.before + inner.in + inner.after);
  }
  memset(out.memory, value, out.nbytes());
  write_rows(padded, items, input.data<int8_t>(), out.mutable_data<int8_t>());
  return Error::Ok;
}

}  // namespace orch::cortex_m
