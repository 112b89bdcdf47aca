#include "orch/kernel.h"
#include "util/check.h"
#include "util/flattened.h"
#include "util/move_items.h"
#include "util/view_sizes.h"

namespace orch::portable {

// aten::view_copy.out(Tensor self, SymInt[] size, *, Tensor(a!) out)
//   -> Tensor(a!)
Error view_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList size = args.int_list(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype && size.size() == out.dim,
             Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  ORCH_TRY(view_sizes(size, self.numel(), sizes));
  ORCH_TRY(resize_output(out, {sizes, out.dim}, self));

  move_flattened(out, self, 0);
  return Error::Ok;
}

// aten::view_copy.dtype_out(Tensor self, ScalarType dtype, *, Tensor(a!) out)
//   -> Tensor(a!)
//
// The bytes of each line along the last dimension, which lie side by side where
// the sizes of items differ. What becomes Bool is true unless it is 0.
Error view_copy_dtype_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(
      args.integer(1) == static_cast<int64_t>(out.dtype) && self.dim == out.dim,
      Error::InvalidArgument);
  const int32_t from_bytes = static_cast<int32_t>(item_bytes(self.dtype));
  const int32_t to_bytes = static_cast<int32_t>(item_bytes(out.dtype));
  const int last = self.dim - 1;
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  if (from_bytes != to_bytes) {
    ORCH_CHECK(
        last >= 0 && self.order()[last] == last && out.order()[last] == last,
        Error::InvalidArgument);
    const int32_t bytes = sizes[last] * from_bytes;  // of a line: below 2^31
    ORCH_CHECK(bytes % to_bytes == 0, Error::InvalidArgument);
    sizes[last] = bytes / to_bytes;
  }
  ORCH_TRY(resize_output(out, {sizes, out.dim}, self));
  const Strides from(self);
  const Strides to(out);
  StridedLoop loop;
  if (from_bytes == to_bytes) {
    loop = loop_over(out, self);
    move_rows(loop, self.memory, out.memory, out.dtype);
  } else {
    for (int i = 0; i < last; ++i) {
      const int d = out.order()[i];
      loop.add(sizes[d], to[d] * to_bytes, from[d] * from_bytes);
    }
    loop.add(sizes[last] * to_bytes, 1, 1);
    move_rows(loop, self.memory, out.memory, ScalarType::Byte);
  }
  if (out.dtype == ScalarType::Bool) {
    uint8_t* const items = out.mutable_data<uint8_t>();
    const int32_t count = out.numel();
    for (int32_t i = 0; i < count; ++i) items[i] = items[i] != 0 ? 1 : 0;
  }
  return Error::Ok;
}

}  // namespace orch::portable
