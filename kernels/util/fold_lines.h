// Items that an index brings to one place, folded into one.
#pragma once

#include <stdint.h>

#include "util/indexing.h"
#include "util/strided_loop.h"
#include "util/types.h"

namespace orch {

/// Folds items of `src` into those of `out` that `index` names along `dim`:
/// result = fold(result, item), in the order of the index, and in the end
/// finish(result, count) of `count` items. `from_out`: the item of `out` is the
/// first. Places that the index does not name stay. Results are computed in
/// Compute<T>, a block of them at a time, and rounded once.
///
/// Trusts what AlongDim::check checks; other indices are left out.
template <typename T, typename Fold, typename Finish>
void fold_lines(const Tensor& index, const Tensor& src, int dim, bool from_out,
                Tensor& out, Fold fold, Finish finish) {
  using C = Compute<T>;
  constexpr int32_t kBlock = 32;
  const Strides at_index(index);
  const Strides at_src(src);
  const Strides at_out(out);
  const bool flat = out.dim == 0;
  const int32_t size = flat ? 1 : out.size(dim);
  const int32_t count = index.dim == 0 ? 1 : index.size(dim);
  const int32_t index_step = index.dim == 0 ? 0 : at_index[dim];
  const int32_t src_step = src.dim == 0 ? 0 : at_src[dim];
  const int32_t out_step = flat ? 0 : at_out[dim];
  StridedLoop lines;
  for (int d = 0; d < index.dim; ++d) {
    if (d == dim) continue;
    lines.add(index.size(d), at_out[d], at_index[d], at_src[d]);
  }
  for (; lines.valid(); lines.next()) {
    for (int32_t row = 0; row < lines.row_size(); ++row) {
      T* const to =
          out.mutable_data<T>() + lines.offset(0) + row * lines.row_stride(0);
      const int32_t first = lines.offset(1) + row * lines.row_stride(1);
      const T* const from =
          src.data<T>() + lines.offset(2) + row * lines.row_stride(2);
      for (int32_t low = 0; low < size; low += kBlock) {
        const int32_t block = size - low < kBlock ? size - low : kBlock;
        C results[kBlock];
        int32_t counts[kBlock];
        for (int32_t i = 0; i < block; ++i) {
          results[i] = static_cast<C>(to[(low + i) * out_step]);
          counts[i] = 0;
        }
        for (int32_t i = 0; i < count; ++i) {
          const int64_t at = load_index(index, first + i * index_step) - low;
          if (at < 0 || at >= block) continue;
          const C item = static_cast<C>(from[i * src_step]);
          const bool starts = counts[at]++ == 0 && !from_out;
          results[at] = starts ? item : fold(results[at], item);
        }
        for (int32_t i = 0; i < block; ++i) {
          if (counts[i] == 0) continue;
          to[(low + i) * out_step] =
              convert<T>(finish(results[i], counts[i] + (from_out ? 1 : 0)));
        }
      }
    }
  }
}

}  // namespace orch
