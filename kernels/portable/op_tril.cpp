#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/strided_loop.h"

namespace orch::portable {

// aten::tril.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out)
//   -> Tensor(a!)
Error tril_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  int64_t diagonal = args.integer(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype && self.dim >= 2, Error::InvalidArgument);
  ORCH_TRY(resize(out, self.sizes()));
  const int32_t rows = self.size(self.dim - 2);
  const int32_t columns = self.size(self.dim - 1);
  if (diagonal < -rows) diagonal = -rows;
  if (diagonal > columns) diagonal = columns;
  if (rows == 0 || columns == 0) return Error::Ok;

  const Strides from(self);
  const Strides to(out);
  const int32_t next_source = from[self.dim - 1];
  const int32_t next_target = to[self.dim - 1];
  StridedLoop matrices;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    if (d < out.dim - 2) matrices.add(out.size(d), to[d], from[d]);
  }
  return switch_item<~0U>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for (; matrices.valid(); matrices.next()) {
      for (int32_t m = 0; m < matrices.row_size(); ++m) {
        const T* row_source =
            self.data<T>() + matrices.offset(1) + m * matrices.row_stride(1);
        T* row_target = out.mutable_data<T>() + matrices.offset(0) +
                        m * matrices.row_stride(0);
        for (int32_t row = 0; row < rows; ++row) {
          int64_t kept = row + diagonal + 1;
          if (kept > columns) kept = columns;
          const T* source = row_source + row * from[self.dim - 2];
          T* target = row_target + row * to[self.dim - 2];
          int32_t column = 0;
          for (; column < kept; ++column) {
            *target = *source;
            source += next_source;
            target += next_target;
          }
          for (; column < columns; ++column) {
            *target = T(0);
            target += next_target;
          }
        }
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
