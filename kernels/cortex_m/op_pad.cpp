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
  return memcmp(tensor.order, kOrder, sizeof kOrder) == 0;
}

/// Writes what surrounds the input from dimension `d` on, and the input.
void write(const Padded* padded, const int32_t* items, int8_t value,
           const int8_t*& x, int8_t*& y) {
  const auto fill = [&](int32_t count) {
    memset(y, value, static_cast<size_t>(count));
    y += count;
  };
  fill(padded[0].before * items[0]);
  for (int32_t i = 0; i < padded[0].in; ++i) {
    fill(padded[1].before * items[1]);
    for (int32_t j = 0; j < padded[1].in; ++j) {
      fill(padded[2].before * items[2]);
      for (int32_t k = 0; k < padded[2].in; ++k) {
        fill(padded[3].before);
        memmove(y, x, static_cast<size_t>(padded[3].in));
        x += padded[3].in;
        y += padded[3].in;
        fill(padded[3].after);
      }
      fill(padded[2].after * items[2]);
    }
    fill(padded[1].after * items[1]);
  }
  fill(padded[0].after * items[0]);
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
    ORCH_CHECK(nhwc || input.order[d] == d, Error::NotSupported);
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

  int32_t items[4] = {1, 1, 1,
                      1};  // in the output, of one index of a dimension
  for (int i = 2; i >= 0; --i) {
    const Padded& inner = padded[i + 1];
    items[i] = items[i + 1] * (inner.before + inner.in + inner.after);
  }
  const int8_t* x = input.data<int8_t>();
  int8_t* y = out.mutable_data<int8_t>();
  write(padded, items, static_cast<int8_t>(value), x, y);
  return Error::Ok;
}

}  // namespace orch::cortex_m
