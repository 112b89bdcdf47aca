#include "orch_selected/op_prod.h"

#include "orch/kernel.h"
#include "util/isa.h"
#include "util/reduce.h"

namespace orch::portable {
namespace {

/// The product of load(i) for each item, one after the other: parts of it could
/// leave the range of floats where the whole does not.
template <typename Load>
ORCH_HOT auto product_of_items(Load load, StridedLoop& loop) {
  using C = decltype(load(0));
  C product = static_cast<C>(1);
  for (; loop.valid(); loop.next()) {
    int32_t at = loop.offset(0);
    const int32_t step = loop.row_stride(0);
    for (int32_t left = loop.row_size(); left > 0; --left) {
      product = product * load(at);
      at += step;
    }
  }
  return product;
}

/// Products over the dimensions of a set.
template <uint32_t kBits>
Error prod(const Tensor& self, unsigned dims, bool keepdim, Tensor& out) {
  Reduction reduction;
  ORCH_TRY(prepare_reduction(self, dims, keepdim, out, reduction));
  return fold_items<kBits>(self, out, reduction,
                           [](auto load, StridedLoop& items) {
                             return product_of_items(load, items);
                           });
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
