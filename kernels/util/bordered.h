// Tensors of which each dimension begins and ends elsewhere than the input's.
#pragma once

#include <stdint.h>

#include "orch/value.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch {

/// What lies before and after the items of a dimension.
enum class Border : uint8_t {
  Reflect,    // them, backwards from the second one
  Replicate,  // the first and the last one
  Wrap,       // them, again
};

/// Neighbouring items of a dimension of an output that come from evenly spaced
/// ones of the input.
struct BorderRun {
  int part;  // 0: before the input's items, 1: these, 2: after them
  int32_t to;
  int32_t from;
  int32_t step;
  int32_t count;
};

/// Goes to the next run that has items; `run.part` is -1 before the first one.
/// False at the end.
///
/// `before`: items before those of the input, negative if these are cut. Trusts
/// that `size` + `before` and `out_size` - `before` are below 2^31, and that
/// the indices that the border gives exist.
__attribute__((noinline)) inline bool next_run(Border border, int32_t size,
                                               int32_t out_size, int32_t before,
                                               BorderRun& run) {
  // Positions are counted from the first item of the input.
  const int32_t begin = -before;
  const int32_t end = out_size - before;
  while (++run.part < 3) {
    int32_t low = run.part == 0 ? begin : run.part == 1 ? 0 : size;
    int32_t high = run.part == 0 ? 0 : run.part == 1 ? size : end;
    if (low < begin) low = begin;
    if (high > end) high = end;
    if (low >= high) continue;
    run.to = low - begin;
    run.count = high - low;
    run.from = low;
    run.step = 1;
    if (run.part == 1) return true;
    switch (border) {
      case Border::Reflect:
        run.from = run.part == 0 ? -low : size - 2 - (low - size);
        run.step = -1;
        break;
      case Border::Replicate:
        run.from = run.part == 0 ? 0 : size - 1;
        run.step = 0;
        break;
      case Border::Wrap:
        run.from = run.part == 0 ? low + size : low - size;
        break;
    }
    return true;
  }
  return false;
}

/// Writes `out`, which has its sizes, from `self`, with so many items before
/// those of each dimension. Trusts what `next_run` does.
__attribute__((noinline)) inline void move_bordered(Tensor& out,
                                                    const Tensor& self,
                                                    const int32_t* before,
                                                    Border border) {
  const Strides own(self);
  const Strides to(out);
  const int rank = out.dim;
  BorderRun runs[kMaxDim];
  const auto next = [&](int d) {
    return next_run(border, self.size(d), out.size(d), before[d], runs[d]);
  };
  for (int d = 0; d < rank; ++d) {
    runs[d].part = -1;
    if (!next(d)) return;
  }
  for (;;) {
    ItemView from{};
    int32_t sizes[kMaxDim];
    int32_t to_offset = 0;
    for (int d = 0; d < rank; ++d) {
      to_offset += runs[d].to * to[d];
      from.offset += runs[d].from * own[d];
      from.stride[d] = runs[d].step * own[d];
      sizes[d] = runs[d].count;
    }
    move_between(out, to_offset, to.at, sizes, self.memory, from);
    int d = rank;
    while (--d >= 0 && !next(d)) {
      runs[d].part = -1;
      next(d);
    }
    if (d < 0) return;
  }
}

/// aten::reflection_padNd and aten::replication_padNd for `count` dimensions:
/// arguments self, padding, out. Errors: InvalidArgument, ShapeTooLarge.
__attribute__((noinline)) inline Error pad_border(const Args& args, int count,
                                                  Border border) {
  const Tensor& self = args.tensor(0);
  const IntList padding = args.int_list(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_CHECK(self.dim == count + 1 || self.dim == count + 2,
             Error::InvalidArgument);
  ORCH_CHECK(padding.size() == 2 * count, Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  int32_t before[kMaxDim] = {};
  for (int d = 0; d < self.dim; ++d) {
    const int32_t size = self.size(d);
    sizes[d] = size;
    const int pair = self.dim - 1 - d;  // the last dimension comes first
    if (pair >= count) continue;
    int32_t after = 0;
    ORCH_TRY(read_int(padding[2 * pair], -kMaxExtent, before[d]));
    ORCH_TRY(read_int(padding[2 * pair + 1], -kMaxExtent, after));
    const int64_t begun = int64_t{size} + before[d];
    const int64_t ended = int64_t{size} + after;
    const int64_t whole = begun + after;
    ORCH_CHECK(whole == 0 || (whole > 0 && size > 0), Error::InvalidArgument);
    if (border == Border::Reflect && whole > 0) {
      ORCH_CHECK(before[d] < size && after < size, Error::InvalidArgument);
    }
    ORCH_CHECK(begun <= INT32_MAX && ended <= INT32_MAX && whole <= INT32_MAX,
               Error::ShapeTooLarge);
    sizes[d] = static_cast<int32_t>(whole);
  }
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));
  move_bordered(out, self, before, border);
  return Error::Ok;
}

}  // namespace orch
