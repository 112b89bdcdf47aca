// Numbers from tensors: sizes, and the item of a tensor that has one.
#include "orch_selected/op_sizes.h"

#include "orch/kernel.h"
#include "prim_ops/numbers.h"
#include "util/check.h"
#include "util/dtype.h"

namespace orch::prim_ops {

// aten::sym_size.int(Tensor self, int dim) -> SymInt
Error sym_size_int(const Args& args) {
  const Tensor& self = args.tensor(0);
  ORCH_CHECK(self.dim != 0, Error::InvalidArgument);
  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  args.value(2).set_int(self.size(dim));
  return Error::Ok;
}

// aten::sym_numel(Tensor self) -> SymInt
Error sym_numel(const Args& args) {
  args.value(1).set_int(args.tensor(0).numel());
  return Error::Ok;
}

// aten::_local_scalar_dense(Tensor self) -> Scalar
// The first item, of any number but 0, as ExecuTorch has it.
Error _local_scalar_dense(const Args& args) {
  const Tensor& self = args.tensor(0);
  Value& out = args.value(1);
  ORCH_CHECK(self.numel() != 0, Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten__local_scalar_dense;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (kIsSame<T, bool>) {
      ORCH_CHECK(out.tag() == Tag::Bool, Error::InvalidArgument);
      out.set_bool(*self.data<uint8_t>() != 0);  // whatever byte is there
      return Error::Ok;
    } else if constexpr (kIsFloating<T>) {
      return give_double(out, convert<double>(*self.data<T>()));
    } else {
      return give_int(out, static_cast<int64_t>(*self.data<T>()));
    }
  });
}

}  // namespace orch::prim_ops
