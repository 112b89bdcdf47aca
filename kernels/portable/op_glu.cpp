#include "orch_selected/op_glu.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/lanes.h"
#include "util/strided_loop.h"

namespace orch::portable {
namespace {

template <typename C>
C gated(C x, C gate) {
  return x * (1 / (1 + math::exp(-gate)));
}

}  // namespace

// aten::glu.out(Tensor self, int dim=-1, *, Tensor(a!) out) -> Tensor(a!)
//
// The first half of a dimension times the sigmoid of the second.
Error glu_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_CHECK(self.dim > 0 && self.size(dim) % 2 == 0, Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  sizes[dim] /= 2;
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));

  const Strides from(self);
  const Strides to(out);
  const int32_t half = sizes[dim] * from[dim];
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    loop.add(out.size(d), to[d], from[d]);
  }
  constexpr DtypeSet kDtypes = selected::aten_glu_out;
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    for (; loop.valid(); loop.next()) {
      const T* x = self.data<T>() + loop.offset(1);
      int32_t at = loop.offset(0);
      const int32_t x_step = loop.row_stride(1);
      const int32_t at_step = loop.row_stride(0);
      int32_t left = loop.row_size();
      const auto fn =
          of_lanes(type, [](auto a, auto b) { return gated(a, b); });
      if constexpr (kInLanes<decltype(fn)>) {
        if (out.dtype == self.dtype && x_step == 1 && at_step == 1) {
          fn.row(x, out.mutable_data<T>() + at, left, x + half);
          continue;
        }
      }
      for (; left > 0; --left) {
        const C value = gated(static_cast<C>(*x), static_cast<C>(x[half]));
        if (kDtypes.single() || self.dtype == out.dtype) {
          out.mutable_data<T>()[at] = static_cast<T>(value);
        } else if constexpr (!kDtypes.single()) {
          store_as<kDtypes.bits>(out.dtype, out.memory, at,
                                 static_cast<T>(value));
        }
        x += x_step;
        at += at_step;
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
