#include "orch/model.h"

#include <string.h>

namespace orch {

Error prepare(const ModelMethod& method) {
  LoadedMethod& loaded = *method.loaded;
  if (loaded.state_used != 0) return Error::Ok;
  Program program;
  ORCH_TRY(Program::open(method.program, program));
  size_t used = 0;
  ORCH_TRY(load_method(program, method.method_index, kRegisteredKernels,
                       {method.state, method.arenas}, loaded.image, used));
  loaded.state_used = static_cast<uint32_t>(used);
  return Error::Ok;
}

Error set_input(const ModelMethod& method, uint32_t index, const void* data,
                Span<const int32_t> sizes) {
  Tensor& tensor = input(method, index).tensor();
  ORCH_TRY(resize(tensor, sizes));
  const size_t bytes = tensor.nbytes();
  if (bytes != 0) memcpy(tensor.memory, data, bytes);
  return Error::Ok;
}

Error get_output(const ModelMethod& method, uint32_t index, void* data,
                 size_t capacity, int32_t* sizes) {
  const Tensor& tensor = output(method, index).tensor();
  const size_t bytes = tensor.nbytes();
  ORCH_CHECK(bytes <= capacity, Error::ShapeTooLarge);
  if (bytes != 0) memcpy(data, tensor.memory, bytes);
  if (sizes != nullptr) {
    for (int i = 0; i < tensor.dim; ++i) sizes[i] = tensor.size(i);
  }
  return Error::Ok;
}

}  // namespace orch
