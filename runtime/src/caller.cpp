#include "orch/caller.h"

namespace orch {
namespace {

/// Calls fn(tensor) for every input and output in memory of the caller.
template <typename Fn>
void for_each(const MethodImage& image, Fn fn) {
  const Span<const ValueIndex> ends[] = {image.inputs, image.outputs};
  for (const Span<const ValueIndex>& indices : ends) {
    for (const ValueIndex index : indices) {
      Value& value = image.values[static_cast<size_t>(index)];
      if (value.is_tensor() && (value.tensor().flags & Tensor::kCaller) != 0) {
        fn(value.tensor());
      }
    }
  }
}

}  // namespace

Error set_memory(Value& value, const void* memory) {
  Tensor& tensor = value.tensor();
  ORCH_CHECK(reinterpret_cast<uintptr_t>(memory) % alignment(tensor.dtype) == 0,
             Error::Misaligned);
  tensor.memory = const_cast<void*>(memory);  // kReadOnly guards inputs
  return Error::Ok;
}

Error check_memory(const ModelMethod& method) {
  bool set = true;
  for_each(image_of(method),
           [&set](const Tensor& tensor) { set &= tensor.memory != nullptr; });
  return set ? Error::Ok : Error::MemoryNotSet;
}

void clear_memory(const ModelMethod& method) {
  for_each(image_of(method), [](Tensor& tensor) { tensor.memory = nullptr; });
}

void get_sizes(const ModelMethod& method, uint32_t index, int32_t* sizes) {
  const Tensor& tensor = output(method, index).tensor();
  for (int i = 0; i < tensor.dim; ++i) sizes[i] = tensor.size(i);
}

}  // namespace orch
