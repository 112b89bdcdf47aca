// Methods of the models that are linked into a product.
//
// The build generates one ModelMethod per method and a typed function per
// method on top of this interface; products use those functions
// (include/<profile>.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "orch/error.h"
#include "orch/loader.h"
#include "orch/method.h"
#include "orch/span.h"

namespace orch {

/// What a method keeps in RAM besides its state block.
struct LoadedMethod {
  MethodImage image;
  // Bytes of the state block; 0 until the method is loaded. The initialiser
  // makes the type constant-initialised: without it the compiler emits a
  // constructor.
  uint32_t state_used = 0;
};

/// A method of a linked model: constant, in flash.
struct ModelMethod {
  const char* model;
  const char* name;
  Span<const uint8_t> program;
  uint32_t method_index;
  Span<uint8_t> state;
  Span<const Span<uint8_t>> arenas;
  LoadedMethod* loaded;
};

/// The kernels of this product. Defined by the generated
/// registered_kernels.cpp.
extern const KernelTable kRegisteredKernels;

/// Loads the method unless it is loaded. Errors: those of load_method.
Error prepare(const ModelMethod& method);

/// Forgets a loaded method: the next call loads it anew, with its initial
/// state.
inline void unload(const ModelMethod& method) { method.loaded->state_used = 0; }

/// Value of an input or output. The method must be loaded and the index in
/// range.
inline Value& input(const ModelMethod& method, uint32_t index) {
  const MethodImage& image = method.loaded->image;
  return image.values[static_cast<size_t>(image.inputs[index])];
}
inline Value& output(const ModelMethod& method, uint32_t index) {
  const MethodImage& image = method.loaded->image;
  return image.values[static_cast<size_t>(image.outputs[index])];
}

/// Copies a tensor input into place: `data` holds its elements in the dim order
/// of the program. Errors: InvalidArgument (sizes), ShapeTooLarge.
Error set_input(const ModelMethod& method, uint32_t index, const void* data,
                Span<const int32_t> sizes);

/// Copies a tensor output of at most `capacity` bytes to `data`, and its sizes
/// to `sizes` unless that is null. Errors: ShapeTooLarge.
Error get_output(const ModelMethod& method, uint32_t index, void* data,
                 size_t capacity, int32_t* sizes);

}  // namespace orch
