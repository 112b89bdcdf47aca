#include "orch_selected/op_cholesky.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/matrices.h"

namespace orch::portable {
namespace {

/// L of the lower triangle of a matrix `a` = L * L^T; 0 above. NaN from the
/// column on that shows that the matrix is not positive definite.
template <typename T>
void find_root(Matrix<T> a, Matrix<T> l, int32_t n) {
  for (int32_t j = 0; j < n; ++j) {
    T rest = a.at(j, j);
    for (int32_t k = 0; k < j; ++k) rest -= l.at(j, k) * l.at(j, k);
    const T root = math::sqrt(rest > 0 ? rest : T(-1));
    for (int32_t i = 0; i < j; ++i) l.at(i, j) = 0;
    l.at(j, j) = root;
    for (int32_t i = j + 1; i < n; ++i) {
      T sum = a.at(i, j);
      for (int32_t k = 0; k < j; ++k) sum -= l.at(i, k) * l.at(j, k);
      l.at(i, j) = sum / root;
    }
  }
}

}  // namespace

// aten::cholesky.out(Tensor self, bool upper=False, *, Tensor(a!) out)
//   -> Tensor(a!)
//
// Of one triangle, the other is not read.
Error cholesky_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool upper = args.boolean(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype && self.dim >= 2 &&
                 self.size(self.dim - 1) == self.size(self.dim - 2),
             Error::InvalidArgument);
  ORCH_TRY(resize_output(out, self.sizes(), self));
  const int32_t n = self.size(self.dim - 1);
  const int32_t count = n == 0 ? 0 : count_matrices(self);
  constexpr DtypeSet kDtypes = selected::aten_cholesky_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for (int32_t index = 0; index < count; ++index) {
      const Matrix<T> from = matrix_of<T>(self, index);
      const Matrix<T> to = matrix_of<T>(out, index);
      // The upper one is that of the transposed matrix, transposed.
      find_root(upper ? from.transposed() : from, upper ? to.transposed() : to,
                n);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
