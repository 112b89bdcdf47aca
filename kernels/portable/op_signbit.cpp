#include "orch_selected/op_signbit.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

/// Whether an item is negative, or a float whose sign is: -0 and NaN have one.
template <typename T>
bool has_sign(T item) {
  if constexpr (kIsFloating<T>) {
    UnsignedOf<sizeof(T)> bits;
    memcpy(&bits, &item, sizeof bits);
    return bits >> (8 * sizeof bits - 1) != 0;
  } else {
    return is_negative(item);
  }
}

}  // namespace

// aten::signbit.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error signbit_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  ORCH_CHECK(out.dtype == ScalarType::Bool, Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  constexpr DtypeSet kDtypes = selected::aten_signbit_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    StridedLoop loop = loop_over(out, self);
    map_rows(loop, self.data<T>(), out.mutable_data<bool>(), has_sign<T>);
    return Error::Ok;
  });
}

}  // namespace orch::portable
