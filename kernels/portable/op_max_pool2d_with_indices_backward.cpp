#include "orch_selected/op_max_pool2d_with_indices_backward.h"

#include <string.h>

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/pool.h"

namespace orch::portable {
namespace {

/// Adds the items of `grad_output` to where the largest items were.
template <typename T>
Error add_gradients(const Tensor& grad_output, const Tensor& indices,
                    Tensor& grad_input) {
  const Planes y(grad_output, 0);
  const Planes z(indices, 0);
  const Planes x(grad_input, 0);
  const int64_t items = int64_t{x.size[2]} * x.size[3];
  // Whether a plane is one row of items at even steps.
  const bool flat = x.stride[2] == x.stride[3] * x.size[3];
  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t c = 0; c < y.size[1]; ++c) {
      T* const plane =
          grad_input.mutable_data<T>() + n * x.stride[0] + c * x.stride[1];
      for (int32_t h = 0; h < y.size[2]; ++h) {
        for (int32_t w = 0; w < y.size[3]; ++w) {
          const int64_t at =
              indices.data<int64_t>()[n * z.stride[0] + c * z.stride[1] +
                                      h * z.stride[2] + w * z.stride[3]];
          if (at == -1) continue;
          // Again: where memories overlap, what was written may be an index.
          ORCH_CHECK(at >= 0 && at < items, Error::InvalidArgument);
          const int32_t place = static_cast<int32_t>(at);
          int32_t offset = place * x.stride[3];
          if (!flat) {
            offset = place / x.size[3] * x.stride[2] +
                     place % x.size[3] * x.stride[3];
          }
          T& item = plane[offset];
          const T gradient =
              grad_output.data<T>()[n * y.stride[0] + c * y.stride[1] +
                                    h * y.stride[2] + w * y.stride[3]];
          item = static_cast<T>(static_cast<Compute<T>>(item) +
                                static_cast<Compute<T>>(gradient));
        }
      }
    }
  }
  return Error::Ok;
}

}  // namespace

// aten::max_pool2d_with_indices_backward.grad_input(Tensor grad_output,
//   Tensor self, int[2] kernel_size, int[2] stride, int[2] padding,
//   int[2] dilation, bool ceil_mode, Tensor indices, *, Tensor(a!) grad_input)
//   -> Tensor(a!)
//
// An index of -1 is that of no item.
Error max_pool2d_with_indices_backward_grad_input(const Args& args) {
  const Tensor& grad_output = args.tensor(0);
  const Tensor& self = args.tensor(1);
  const IntList dilation = args.int_list(5);
  const Tensor& indices = args.tensor(7);
  Tensor& grad_input = args.tensor(8);

  constexpr DtypeSet kDtypes =
      selected::aten_max_pool2d_with_indices_backward_grad_input;
  ORCH_CHECK(self.dtype == grad_input.dtype &&
                 grad_output.dtype == grad_input.dtype &&
                 indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  Pool<2> pool;
  int32_t sizes[4];
  ORCH_TRY(pooled_sizes(self, args.int_list(2), args.int_list(3),
                        args.int_list(4), &dilation, args.boolean(6), pool,
                        sizes));
  ORCH_CHECK(grad_output.dim == self.dim && indices.dim == self.dim,
             Error::InvalidArgument);
  for (int d = 0; d < self.dim; ++d) {
    ORCH_CHECK(grad_output.size(d) == sizes[d] && indices.size(d) == sizes[d],
               Error::InvalidArgument);
  }
  const int64_t items = int64_t{pool.axes[0].in} * pool.axes[1].in;
  for (int32_t i = 0, count = indices.numel(); i < count; ++i) {
    const int64_t at = indices.data<int64_t>()[i];
    ORCH_CHECK(at >= -1 && at < items, Error::InvalidArgument);
  }
  ORCH_TRY(resize_output(grad_input, self.sizes(), self, grad_output, indices));
  memset(grad_input.memory, 0, grad_input.nbytes());
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return add_gradients<T>(grad_output, indices, grad_input);
  });
}

}  // namespace orch::portable
