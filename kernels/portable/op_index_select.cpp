#include "orch/kernel.h"
#include "util/check.h"
#include "util/indexing.h"
#include "util/move_items.h"

namespace orch::portable {
// aten::index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out)
//   -> Tensor(a!)
Error index_select_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& index = args.tensor(2);
  Tensor& out = args.tensor(3);

  int dim;
  ORCH_CHECK(
      self.dtype == out.dtype && kIndices.has(index.dtype) && index.dim <= 1,
      Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  const int32_t count = index.numel();
  const int32_t size = self.dim == 0 ? 1 : self.size(dim);
  ORCH_CHECK(self.dim > 0 || count == 1, Error::InvalidArgument);
  ORCH_CHECK_DATA(are_below(index, size), Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  for (int d = 0; d < self.dim; ++d) sizes[d] = d == dim ? count : self.size(d);
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self, index));

  const Strides from(self);
  const Strides to(out);
  StridedLoop rest;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    if (d != dim) rest.add(sizes[d], to[d], from[d]);
  }
  if (!rest.valid()) return Error::Ok;
  const int32_t from_step = self.dim == 0 ? 0 : from[dim];
  const int32_t to_step = self.dim == 0 ? 0 : to[dim];
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  // Items side by side, a block of indices at a time.
  constexpr int32_t kBlock = 32;
  for (int32_t first = 0; to_step == 1 && first < count; first += kBlock) {
    const int32_t left = count - first;
    const int32_t block = left < kBlock ? left : kBlock;
    int32_t at[kBlock];
    for (int32_t i = 0; i < block; ++i) {
      const int64_t value = load_index(index, first + i);
      // Again: where memories overlap, what was written may be an index.
      ORCH_CHECK_DATA(is_index(value, size), Error::InvalidArgument);
      at[i] = static_cast<int32_t>(value) * from_step;
    }
    for (; rest.valid(); rest.next()) {
      for (int32_t i = 0; i < rest.row_size(); ++i) {
        const int32_t source = rest.offset(1) + i * rest.row_stride(1);
        const int32_t target = rest.offset(0) + i * rest.row_stride(0) + first;
        gather_row(self.data<uint8_t>() + source * bytes, at, block,
                   out.mutable_data<uint8_t>() + target * bytes, out.dtype);
      }
    }
    rest.restart();
  }
  for (int32_t i = 0; to_step != 1 && i < count; ++i) {
    const int64_t value = load_index(index, i);
    // Again: where memories overlap, what was written may be an index.
    ORCH_CHECK_DATA(value >= 0 && value < size, Error::InvalidArgument);
    const int32_t source = static_cast<int32_t>(value) * from_step;
    move_rows(rest, self.data<uint8_t>() + source * bytes,
              out.mutable_data<uint8_t>() + i * to_step * bytes, out.dtype);
    rest.restart();
  }
  return Error::Ok;
}

}  // namespace orch::portable
