#include "orch_selected/op_var.h"

#include "orch/kernel.h"
#include "util/variance.h"

namespace orch::portable {

// aten::var.correction_out(Tensor self, int[1]? dim=None, *,
//   Scalar? correction=None, bool keepdim=False, Tensor(a!) out) -> Tensor(a!)
//
// Without `correction`, 1 is taken off the number of items.
Error var_correction_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  unsigned dims = 0;
  ORCH_TRY(read_reduced_dims(args, 1, self, dims));
  return variance<selected::aten_var_correction_out.bits>(
      self, dims, correction_of(args, 2), args.boolean(3), args.tensor(4));
}

// aten::var.out(Tensor self, int[1]? dim, bool unbiased=True,
//   bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)
Error var_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  unsigned dims = 0;
  ORCH_TRY(read_reduced_dims(args, 1, self, dims));
  return variance<selected::aten_var_out.bits>(
      self, dims, {Tag::Int, {args.boolean(2) ? 1U : 0U, 0}}, args.boolean(3),
      args.tensor(4));
}

}  // namespace orch::portable
