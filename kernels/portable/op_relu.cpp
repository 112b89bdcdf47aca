#include "orch_selected/op_relu.h"

#include "orch/kernel.h"
#include "util/clamp.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

/// Not greater than 0 would lose NaN.
template <typename T>
auto relu_of(Type<T> type) {
  return in_lanes(
      type, [](T value) { return is_negative(value) ? T(0) : value; },
      relu_lanes);
}

}  // namespace

// aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error relu_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  constexpr DtypeSet kDtypes = selected::aten_relu_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    map_unary<typename decltype(type)::type>(self, out, relu_of(type));
    return Error::Ok;
  });
}

// Prepared: floats.
void relu(const PreparedCall& call) {
  map_prepared(static_cast<const ItemsCall&>(call), relu_of(Type<float>{}));
}

}  // namespace orch::portable
