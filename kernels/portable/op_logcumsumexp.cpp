#include "orch_selected/op_logcumsumexp.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/lines.h"

namespace orch::portable {
namespace {

/// The logarithm of a sum of powers of e, as its largest exponent and the sum
/// of all powers divided by the largest.
template <typename F>
struct LogSum {
  F largest = lowest<F>();
  F sum = 0;

  F add(F exponent) {
    if (exponent == largest) {  // also where both are infinite
      sum += 1;
    } else if (exponent > largest) {
      sum = sum * math::exp(largest - exponent) + 1;
      largest = exponent;
    } else {
      sum += math::exp(exponent - largest);  // or NaN
    }
    return largest + math::log(sum);
  }
};

}  // namespace

// aten::logcumsumexp.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
Error logcumsumexp_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  Lines lines(self, dim, out, out);
  constexpr DtypeSet kDtypes = selected::aten_logcumsumexp_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    each_line(lines, [&](int32_t to, int32_t from, int32_t) {
      LogSum<Compute<T>> sum;
      for (int32_t i = 0; i < lines.size; ++i) {
        const T item = self.data<T>()[from + i * lines.step[1]];
        out.mutable_data<T>()[to + i * lines.step[0]] =
            static_cast<T>(sum.add(static_cast<Compute<T>>(item)));
      }
    });
    return Error::Ok;
  });
}

}  // namespace orch::portable
