// Lists as inputs and outputs; alone, so that products without them do not pay
// for it.
#include <string.h>

#include "orch/model.h"
#include "port_fit.h"

namespace orch {

bool items_fit(const ModelMethod& method, const Value& list,
               Span<const Port> items, bool writable) {
  if (list.list().count != items.size()) return false;
  for (size_t i = 0; i < items.size(); ++i) {
    const int32_t at = list.list().tensor_index(static_cast<uint32_t>(i));
    if (at < 0) {
      if (items[i].tag != Tag::None) return false;
      continue;
    }
    const Value& value = image_of(method).values[static_cast<size_t>(at)];
    // The caller's memory is for whole inputs and outputs only.
    if (!fits(value, items[i], Tensor::kDynamic)) return false;
    if (writable && value.is_tensor() &&
        (value.tensor().flags & Tensor::kReadOnly) != 0) {
      return false;
    }
  }
  return true;
}

Error write_tensor(Tensor& tensor, const void* data,
                   Span<const int32_t> sizes) {
  ORCH_TRY(resize(tensor, sizes));
  const size_t bytes = tensor.nbytes();
  if (bytes != 0) memmove(tensor.memory, data, bytes);
  return Error::Ok;
}

Error read_tensor(const Tensor& tensor, void* data, size_t capacity,
                  int32_t* sizes) {
  const size_t bytes = tensor.nbytes();
  ORCH_CHECK(bytes <= capacity, Error::ShapeTooLarge);
  if (bytes != 0) memmove(data, tensor.memory, bytes);
  if (sizes != nullptr) {
    for (int i = 0; i < tensor.dim; ++i) sizes[i] = tensor.size(i);
  }
  return Error::Ok;
}

int64_t list_int(const ModelMethod& method, uint32_t index, uint32_t at) {
  const List& list = output(method, index).list();
  const IntList ints(list, image_of(method).values.data());
  return at < list.count ? ints[static_cast<int>(at)] : 0;
}

Error get_ints(const ModelMethod& method, uint32_t index, int64_t* items,
               uint32_t capacity, uint32_t* count) {
  const List& list = output(method, index).list();
  ORCH_CHECK(list.count <= capacity, Error::ShapeTooLarge);
  for (uint32_t i = 0; i < list.count; ++i) {
    items[i] = list_int(method, index, i);
  }
  *count = list.count;
  return Error::Ok;
}

}  // namespace orch
