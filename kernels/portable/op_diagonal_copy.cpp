#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::diagonal_copy.out(Tensor self, int offset=0, int dim1=0, int dim2=1, *,
//   Tensor(a!) out) -> Tensor(a!)
Error diagonal_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t offset = args.integer(1);
  Tensor& out = args.tensor(4);

  int rows = 0;
  int columns = 0;
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(2), self.dim, rows));
  ORCH_TRY(read_dim(args.integer(3), self.dim, columns));
  ORCH_CHECK(rows != columns, Error::InvalidArgument);
  // The first item of the diagonal; one past the last row or column if there is
  // none.
  int32_t row = 0;
  int32_t column = 0;
  if (offset > 0) {
    const int32_t size = self.size(columns);
    column = offset < size ? static_cast<int32_t>(offset) : size;
  } else {
    const int32_t size = self.size(rows);
    row = offset > -size ? static_cast<int32_t>(-offset) : size;
  }
  const int32_t down = self.size(rows) - row;
  const int32_t right = self.size(columns) - column;

  const Strides strides(self);
  ItemView view{};
  int32_t sizes[kMaxDim];
  size_t rank = 0;
  for (int i = 0; i < self.dim; ++i) {
    if (i == rows || i == columns) continue;
    sizes[rank] = self.size(i);
    view.stride[rank++] = strides[i];
  }
  view.offset = row * strides[rows] + column * strides[columns];
  sizes[rank] = down < right ? down : right;
  view.stride[rank++] = strides[rows] + strides[columns];
  ORCH_TRY(resize_output(out, {sizes, rank}, self));
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
