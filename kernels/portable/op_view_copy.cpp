#include <string.h>

#include "orch/kernel.h"
#include "util/check.h"
#include "util/view_sizes.h"

namespace orch::portable {
namespace {

/// Where the item at an index of the flattened tensor lies, in items.
int32_t item_offset(const Tensor& tensor, const Strides& strides,
                    int32_t index) {
  int32_t offset = 0;
  for (int i = tensor.dim; i-- > 0;) {
    const int32_t size = tensor.size(i);
    offset += index % size * strides[i];
    index /= size;
  }
  return offset;
}

}  // namespace

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

  const size_t bytes = out.nbytes();
  if (bytes == 0) return Error::Ok;
  if (self.contiguous() && out.contiguous()) {
    memmove(out.memory, self.memory, bytes);
    return Error::Ok;
  }
  const Strides from(self);
  const Strides to(out);
  const size_t item = item_bytes(out.dtype);
  for (int32_t i = 0, count = out.numel(); i < count; ++i) {
    const size_t source = static_cast<size_t>(item_offset(self, from, i));
    const size_t target = static_cast<size_t>(item_offset(out, to, i));
    memmove(out.mutable_data<uint8_t>() + target * item,
            self.data<uint8_t>() + source * item, item);
  }
  return Error::Ok;
}

}  // namespace orch::portable
