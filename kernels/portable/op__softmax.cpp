#include "orch_selected/op__softmax.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/strided_loop.h"

namespace orch::portable {
namespace {

/// One line of a tensor: `size` items, `step` apart.
template <typename In, typename Out>
void softmax_line(const In* from, int32_t from_step, Out* to, int32_t to_step,
                  int32_t size) {
  using C = Compute<In>;
  C largest = static_cast<C>(from[0]);
  for (int32_t i = 1; i < size; ++i) {
    const C value = static_cast<C>(from[i * from_step]);
    if (value > largest) largest = value;
  }
  C sum = 0;
  for (int32_t i = 0; i < size; ++i) {
    const C value = math::exp(static_cast<C>(from[i * from_step]) - largest);
    if constexpr (kIsSame<C, Out>) to[i * to_step] = value;
    sum += value;
  }
  for (int32_t i = 0; i < size; ++i) {
    // A half cannot hold the exponential until here: it is computed again.
    C value;
    if constexpr (kIsSame<C, Out>) {
      value = to[i * to_step];
    } else {
      value = math::exp(static_cast<C>(from[i * from_step]) - largest);
    }
    to[i * to_step] = static_cast<Out>(value / sum);
  }
}

template <typename In, typename Out>
void softmax(const Tensor& self, int dim, Tensor& out) {
  const Strides from(self);
  const Strides to(out);
  const bool scalar = out.dim == 0;
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    if (d == dim) {
      if (out.size(d) == 0) return;
    } else {
      loop.add(out.size(d), to[d], from[d]);
    }
  }
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      softmax_line(
          self.data<In>() + loop.offset(1) + i * loop.row_stride(1),
          scalar ? 0 : from[dim],
          out.mutable_data<Out>() + loop.offset(0) + i * loop.row_stride(0),
          scalar ? 0 : to[dim], scalar ? 1 : out.size(dim));
    }
  }
}

}  // namespace

// aten::_softmax.out(Tensor self, int dim, bool half_to_float, *,
//   Tensor(a!) out) -> Tensor(a!)
Error _softmax_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool half_to_float = args.boolean(2);
  Tensor& out = args.tensor(3);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_TRY(resize(out, self.sizes()));
  constexpr DtypeSet kDtypes = selected::aten__softmax_out;
  if (half_to_float) {
    ORCH_CHECK(self.dtype == ScalarType::Half && out.dtype == ScalarType::Float,
               Error::InvalidArgument);
    if constexpr (kDtypes.has(ScalarType::Half) &&
                  kDtypes.has(ScalarType::Float)) {
      softmax<Half, float>(self, dim, out);
      return Error::Ok;
    }
    return Error::DtypeNotSelected;
  }
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    softmax<T, T>(self, dim, out);
    return Error::Ok;
  });
}

}  // namespace orch::portable
