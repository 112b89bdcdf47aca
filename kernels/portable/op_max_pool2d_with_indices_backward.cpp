#include "orch_selected/op_max_pool2d_with_indices_backward.h"

#include <string.h>

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/indexing.h"
#include "util/isa.h"
#include "util/pool.h"

namespace orch::portable {
namespace {

/// Clears planes and adds gradients to them, where all items lie side by side:
/// `count` to each plane of `items` items. Errors: InvalidArgument.
template <typename T>
ORCH_HOT Error fill_planes(const T* gradients, const int64_t* indices,
                           int32_t count, T* plane, int32_t items,
                           int32_t planes) {
  // So many at a time that they stay in the cache, and are not waited for.
  constexpr int32_t kBlock = 2048 / sizeof(T);
  const int32_t most = items < kBlock ? kBlock / items : 1;
  while (planes > 0) {
    const int32_t now = planes < most ? planes : most;
    planes -= now;
    memset(plane, 0,
           static_cast<size_t>(now) * static_cast<size_t>(items) * sizeof(T));
    for (int32_t p = 0; p < now; ++p) {
      for (int32_t i = 0; i < count; ++i) {
        const int64_t at = indices[i];
        if (is_index(at, items)) {
          T& item = plane[at];
          item = static_cast<T>(static_cast<Compute<T>>(item) +
                                static_cast<Compute<T>>(gradients[i]));
        } else {
          ORCH_CHECK_DATA(at == -1, Error::InvalidArgument);
        }
      }
      indices += count;
      gradients += count;
      plane += items;
    }
  }
  return Error::Ok;
}

/// Adds gradients to the items of a plane. Errors: InvalidArgument.
template <typename T>
ORCH_ALWAYS_INLINE Error add_items(const T* gradients, int32_t step,
                                   const int64_t* indices, int32_t index_step,
                                   int32_t count, T* plane, const Planes& x) {
  const int32_t columns = x.size[3];
  const int32_t items = x.size[2] * columns;
  const int32_t row_step = x.stride[2];
  const int32_t item_step = x.stride[3];
  // Whether a plane is one row of items at even steps.
  const bool flat = row_step == item_step * columns;
  for (; count > 0; --count) {
    const int64_t at = *indices;
    if (is_index(at, items)) {
      const int32_t place = static_cast<int32_t>(at);
      int32_t offset = place * item_step;
      if (!flat) {
        offset = place / columns * row_step + place % columns * item_step;
      }
      T& item = plane[offset];
      item = static_cast<T>(static_cast<Compute<T>>(item) +
                            static_cast<Compute<T>>(*gradients));
    } else {
      ORCH_CHECK_DATA(at == -1, Error::InvalidArgument);
    }
    gradients += step;
    indices += index_step;
  }
  return Error::Ok;
}

/// Adds the items of `grad_output` to where the largest items were; the others
/// are 0. Errors: InvalidArgument.
template <typename T>
Error add_gradients(const Tensor& grad_output, const Tensor& indices,
                    Tensor& grad_input) {
  if (kFavourSpeed && grad_output.contiguous() && indices.contiguous() &&
      grad_input.contiguous()) {
    const int32_t rows = grad_input.size(grad_input.dim - 2);
    const int32_t columns = grad_input.size(grad_input.dim - 1);
    const int32_t count = grad_output.size(grad_output.dim - 2) *
                          grad_output.size(grad_output.dim - 1);
    return fill_planes(grad_output.data<T>(), indices.data<int64_t>(), count,
                       grad_input.mutable_data<T>(), rows * columns,
                       grad_output.numel() / count);
  }
  memset(grad_input.memory, 0, grad_input.nbytes());
  const Planes y(grad_output, 0);
  const Planes z(indices, 0);
  const Planes x(grad_input, 0);
  int32_t height = y.size[2];
  int32_t width = y.size[3];
  if (y.stride[2] == y.stride[3] * width &&
      z.stride[2] == z.stride[3] * width) {
    width *= height;
    height = 1;
  }
  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t c = 0; c < y.size[1]; ++c) {
      const T* gradients =
          grad_output.data<T>() + n * y.stride[0] + c * y.stride[1];
      const int64_t* places =
          indices.data<int64_t>() + n * z.stride[0] + c * z.stride[1];
      T* const plane =
          grad_input.mutable_data<T>() + n * x.stride[0] + c * x.stride[1];
      for (int32_t h = 0; h < height; ++h) {
        ORCH_TRY_DATA(add_items(gradients, y.stride[3], places, z.stride[3],
                                width, plane, x));
        gradients += y.stride[2];
        places += z.stride[2];
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
  ORCH_TRY(resize_output(grad_input, self.sizes(), self, grad_output, indices));
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    ORCH_TRY_DATA(add_gradients<T>(grad_output, indices, grad_input));
    return Error::Ok;
  });
}

}  // namespace orch::portable
