#include "orch_selected/op_addmm.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/dtype.h"
#include "util/limits.h"
#include "util/matmul.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

/// Whether `self` can be broadcast to the sizes of the matrix `out`.
bool broadcasts_to(const Tensor& self, const Tensor& out) {
  if (self.dim > out.dim) return false;
  for (int i = 1; i <= self.dim; ++i) {
    const int32_t size = self.size(self.dim - i);
    if (size != 1 && size != out.size(out.dim - i)) return false;
  }
  return true;
}

template <typename T>
void addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
           const Scalar& beta_value, const Scalar& alpha_value, Tensor& out) {
  using C = Compute<T>;
  const C beta = scalar_as<T>(beta_value);
  const C alpha = scalar_as<T>(alpha_value);
  const Strides strides(self);
  const int32_t row = broadcast_stride(self, strides, 0, 2);
  const int32_t column = broadcast_stride(self, strides, 1, 2);
  const T* from = self.data<T>();
  matmul<T>(mat1, mat2, out, [=](C sum, int32_t i, int32_t j) {
    const C product = alpha * sum;
    // With beta 0, NaN and infinity in self do not count.
    if (beta == C(0)) return product;
    return beta * static_cast<C>(from[i * row + j * column]) + product;
  });
}

}  // namespace

// aten::addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1,
//   Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
Error addmm_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& mat1 = args.tensor(1);
  const Tensor& mat2 = args.tensor(2);
  Tensor& out = args.tensor(5);

  ORCH_TRY(prepare_matmul(mat1, mat2, out, self));
  ORCH_CHECK(self.dtype == out.dtype && broadcasts_to(self, out),
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_addmm_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    addmm<typename decltype(type)::type>(self, mat1, mat2, args.scalar(3),
                                         args.scalar(4), out);
    return Error::Ok;
  });
}

// The same of floats, within limits that follow.
Error addmm_limited_out(const Args& args) {
  return call_limited(addmm_out, args);
}

}  // namespace orch::portable
