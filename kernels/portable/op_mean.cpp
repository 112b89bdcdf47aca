#include "orch_selected/op_mean.h"

#include "orch/kernel.h"
#include "util/reduce.h"

namespace orch::portable {
namespace {

/// Means over the dimensions of a set. `has_dtype`: whether the call names the
/// dtype of the output, without which it has no means of integers.
template <uint32_t kBits>
Error mean(const Tensor& self, unsigned dims, bool keepdim, bool has_dtype,
           Tensor& out) {
  Reduction reduction;
  ORCH_CHECK(kFloating.has(out.dtype), Error::InvalidArgument);
  ORCH_CHECK(has_dtype || kFloating.has(self.dtype), Error::InvalidArgument);
  ORCH_TRY(prepare_reduction(self, dims, keepdim, out, reduction));
  const int32_t count = reduction.count;
  return sum_items<kBits>(self, out, reduction, [count](auto sum) {
    return sum / static_cast<decltype(sum)>(count);
  });
}

}  // namespace

// aten::mean.out(Tensor self, int[1]? dim, bool keepdim=False, *,
//   ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)
Error mean_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(4);

  unsigned dims = 0;
  ORCH_TRY(read_reduced_dims(args, 1, self, dims));
  ORCH_TRY(check_out_dtype(args, 3, out));
  return mean<selected::aten_mean_out.bits>(self, dims, args.boolean(2),
                                            args.has(3), out);
}

// aten::mean.dtype_out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out)
//   -> Tensor(a!)
Error mean_dtype_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  ORCH_TRY(check_out_dtype(args, 1, out));
  return mean<selected::aten_mean_dtype_out.bits>(self, (1U << self.dim) - 1,
                                                  false, args.has(1), out);
}

}  // namespace orch::portable
