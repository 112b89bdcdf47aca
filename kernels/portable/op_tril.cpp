#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {
namespace {

/// Items of a row that stay, of which `kept` are on or below the diagonal.
int32_t limited(int64_t kept, int32_t columns) {
  return kept < 0 ? 0 : kept < columns ? static_cast<int32_t>(kept) : columns;
}

/// Matrices whose rows lie one after the other in both tensors.
template <typename T>
void move_lower(const T* from, T* to, int32_t rows, int32_t columns,
                int64_t diagonal) {
  for (int32_t row = 0; row < rows; ++row) {
    const int32_t count = limited(diagonal + row + 1, columns);
    for (int32_t i = 0; i < count; ++i) to[i] = from[i];
    for (int32_t i = count; i < columns; ++i) to[i] = T{};
    from += columns;
    to += columns;
  }
}

}  // namespace

// aten::tril.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out)
//   -> Tensor(a!)
Error tril_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  int64_t diagonal = args.integer(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype && self.dim >= 2, Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  const int32_t rows = self.size(self.dim - 2);
  const int32_t columns = self.size(self.dim - 1);
  if (diagonal < -rows) diagonal = -rows;
  if (diagonal > columns) diagonal = columns;
  if (rows == 0 || columns == 0) return Error::Ok;

  if (kFavourSpeed && self.contiguous() && out.contiguous()) {
    return switch_item<~0U>(out.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      for (int32_t at = 0; at < out.numel(); at += rows * columns) {
        move_lower(self.data<T>() + at, out.mutable_data<T>() + at, rows,
                   columns, diagonal);
      }
      return Error::Ok;
    });
  }
  const Strides from(self);
  const Strides to(out);
  StridedLoop matrices;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    if (d < out.dim - 2) matrices.add(out.size(d), to[d], from[d]);
  }
  const int32_t next_source = from[out.dim - 1];
  const int32_t next_target = to[out.dim - 1];
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  const WidestItem zero{};
  for (; matrices.valid(); matrices.next()) {
    for (int32_t m = 0; m < matrices.row_size(); ++m) {
      int32_t source = matrices.offset(1) + m * matrices.row_stride(1);
      int32_t target = matrices.offset(0) + m * matrices.row_stride(0);
      int64_t kept = diagonal;
      for (int32_t row = 0; row < rows; ++row) {
        ++kept;
        const int32_t count = limited(kept, columns);
        move_row(self.data<uint8_t>() + source * bytes, next_source,
                 out.mutable_data<uint8_t>() + target * bytes, next_target,
                 count, out.dtype);
        const int32_t rest = target + count * next_target;
        move_row(&zero, 0, out.mutable_data<uint8_t>() + rest * bytes,
                 next_target, columns - count, out.dtype);
        source += from[out.dim - 2];
        target += to[out.dim - 2];
      }
    }
  }
  return Error::Ok;
}

}  // namespace orch::portable
