#include "orch/kernel.h"
#include "util/check.h"
#include "util/indexing.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::embedding.out(Tensor weight, Tensor indices, SymInt padding_idx=-1,
//   bool scale_grad_by_freq=False, bool sparse=False, *, Tensor(a!) out)
//   -> Tensor(a!)
//
// What stands between `indices` and `out` is for training.
Error embedding_out(const Args& args) {
  const Tensor& weight = args.tensor(0);
  const Tensor& indices = args.tensor(1);
  Tensor& out = args.tensor(5);

  ORCH_CHECK(weight.dtype == out.dtype && kIndices.has(indices.dtype),
             Error::InvalidArgument);
  ORCH_CHECK(weight.dim == 2 && indices.dim < kMaxDim, Error::InvalidArgument);
  const int32_t rows = weight.size(0);
  ORCH_CHECK_DATA(are_within(indices, 0, rows), Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  for (int i = 0; i < indices.dim; ++i) sizes[i] = indices.size(i);
  sizes[indices.dim] = weight.size(1);
  const size_t rank = static_cast<size_t>(indices.dim) + 1;
  ORCH_TRY(resize_output(out, {sizes, rank}, weight, indices));

  const Strides to(out);
  const Strides from(weight);
  const Strides at(indices);
  StridedLoop loop;
  for (int i = 0; i < indices.dim; ++i) loop.add(sizes[i], to[i], at[i]);
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  const uint8_t* const table = weight.data<uint8_t>();
  uint8_t* const results = out.mutable_data<uint8_t>();
  const bool side_by_side =
      kFavourSpeed && from[1] == 1 && to[indices.dim] == 1;
  for (; loop.valid(); loop.next()) {
    if (side_by_side) {
      const IndexedRows moved = {
          weight.mutable_data<uint8_t>(), from[0] * bytes,
          results + loop.offset(0) * bytes, loop.row_stride(0) * bytes,
          static_cast<size_t>(sizes[indices.dim] * bytes)};
      ORCH_TRY_DATA(with_indices(indices, [&](auto* items) {
        return move_indexed<false, false>(items + loop.offset(1),
                                          loop.row_stride(1), loop.row_size(),
                                          rows, moved);
      }));
      continue;
    }
    for (int32_t i = 0, count = loop.row_size(); i < count; ++i) {
      const int64_t index =
          load_index(indices, loop.offset(1) + i * loop.row_stride(1));
      // Again: where memories overlap, what was written may be an index.
      ORCH_CHECK_DATA(index >= 0 && index < rows, Error::InvalidArgument);
      const int32_t source = static_cast<int32_t>(index) * from[0];
      const int32_t target = loop.offset(0) + i * loop.row_stride(0);
      move_row(table + source * bytes, from[1], results + target * bytes,
               to[indices.dim], sizes[indices.dim], out.dtype);
    }
  }
  return Error::Ok;
}

}  // namespace orch::portable
