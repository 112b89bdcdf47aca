#include "orch_selected/op_allclose.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/scalar.h"
#include "util/strided_loop.h"

namespace orch::portable {
namespace {

/// `value` rounded to T, in the type that T is computed in.
template <typename T, typename C>
C rounded(C value) {
  if constexpr (kIsHalf<T>) {
    return static_cast<C>(static_cast<T>(value));
  } else {
    return value;
  }
}

/// Source: PyTorch, torch.isclose.
template <typename T>
bool all_close(const Tensor& self, const Tensor& other, double rtol,
               double atol, bool equal_nan) {
  using C = typename Choose<kIsSame<T, double>, double, float>::type;
  const C relative = static_cast<C>(rtol);
  const C absolute = static_cast<C>(atol);
  const C infinity = static_cast<C>(__builtin_inff());
  StridedLoop loop = loop_over(self, other);
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      const T x = self.data<T>()[loop.offset(0) + i * loop.row_stride(0)];
      const T y = other.data<T>()[loop.offset(1) + i * loop.row_stride(1)];
      if (number_of(x) == number_of(y)) continue;
      if (equal_nan && is_nan(number_of(x)) && is_nan(number_of(y))) continue;
      const C a = static_cast<C>(x);
      const C b = static_cast<C>(y);
      C error = rounded<T>(a - b);
      if (error < 0) error = -error;
      C allowed = rounded<T>(relative * b);
      if (allowed < 0) allowed = -allowed;
      allowed = rounded<T>(absolute + allowed);
      // Also false for NaN.
      if (!(error < infinity && error <= allowed)) return false;
    }
  }
  return true;
}

}  // namespace

// aten::allclose.out(Tensor self, Tensor other, float rtol=1e-05,
//   float atol=1e-08, bool equal_nan=False, bool dummy_param=False, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// ExecuTorch's, as PyTorch's returns no tensor; dummy_param means nothing.
Error allclose_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  const double rtol = args.real(2);
  const double atol = args.real(3);
  Tensor& out = args.tensor(6);

  ORCH_CHECK(self.dtype == other.dtype && out.dtype == ScalarType::Bool,
             Error::InvalidArgument);
  ORCH_CHECK(same_sizes(self, other) && out.numel() == 1,
             Error::InvalidArgument);
  // Also false for NaN.
  ORCH_CHECK(rtol >= 0 && atol >= 0, Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_allclose_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    *out.mutable_data<bool>() =
        all_close<T>(self, other, rtol, atol, args.boolean(4));
    return Error::Ok;
  });
}

}  // namespace orch::portable
