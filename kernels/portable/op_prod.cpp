#include "orch_selected/op_prod.h"

#include "orch/kernel.h"
#include "util/reduce.h"

namespace orch::portable {
namespace {

/// Products over the dimensions of a set.
template <uint32_t kBits>
Error prod(const Tensor& self, unsigned dims, bool keepdim, Tensor& out) {
  Reduction reduction;
  ORCH_TRY(prepare_reduction(self, dims, keepdim, out, reduction));
  return fold_items<kBits>(
      self, out, reduction, 1,
      [](auto product, auto item) { return product * item; },
      [](auto product) { return product; });
}

}  // namespace

// aten::prod.int_out(Tensor self, int dim, bool keepdim=False, *,
//   ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)
Error prod_int_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(4);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_TRY(check_out_dtype(args, 3, out));
  return prod<selected::aten_prod_int_out.bits>(self, 1U << dim,
                                                args.boolean(2), out);
}

// aten::prod.out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out)
//   -> Tensor(a!)
Error prod_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  ORCH_TRY(check_out_dtype(args, 1, out));
  return prod<selected::aten_prod_out.bits>(self, (1U << self.dim) - 1, false,
                                            out);
}

}  // namespace orch::portable
