#include "orch/model.h"

#include <string.h>

#include "port_fit.h"

namespace orch {

Error load_linked(const ModelMethod& method) {
  LoadedMethod& loaded = *method.loaded;
  Program program;
  ORCH_TRY(Program::open(method.program, program));
  size_t used = 0;
  ORCH_TRY(load_method(program, method.method_index, kRegisteredKernels,
                       {method.state, method.arenas}, loaded.image, used));
  loaded.state_used = static_cast<uint32_t>(used);
  return Error::Ok;
}

Error start_prelinked(const ModelMethod& method) {
  for (const InitialBytes& bytes : method.prelinked->initial) {
    memcpy(bytes.to, bytes.from, bytes.count);
  }
  method.loaded->image = method.prelinked->image;
  const uint32_t bytes = method.prelinked->state_bytes;
  method.loaded->state_used = bytes == 0 ? 1 : bytes;
  return Error::Ok;
}

namespace {

bool fit(const MethodImage& image, Span<const int32_t> indices,
         Span<const Port> ports) {
  if (indices.size() != ports.size()) return false;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (!fits(image.values[static_cast<size_t>(indices[i])], ports[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace

Error replace(const ModelMethod& method, Span<const uint8_t> bytes,
              Span<const Port> inputs, Span<const Port> outputs,
              KernelTable kernels) {
  unload(method);
  LoadedMethod& loaded = *method.loaded;
  Program program;
  ORCH_TRY(Program::open(bytes, program));
  uint32_t index = 0;
  ORCH_TRY(program.find_method(method.name, index));
  size_t used = 0;
  ORCH_TRY(load_method(program, index, kernels, {method.state, method.arenas},
                       loaded.image, used));
  // The API copies as many bytes as it promised.
  ORCH_CHECK(fit(loaded.image, loaded.image.inputs, inputs) &&
                 fit(loaded.image, loaded.image.outputs, outputs),
             Error::InvalidArgument);
  // A method of no values and no instructions is ready, too.
  loaded.state_used = used == 0 ? 1 : static_cast<uint32_t>(used);
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
