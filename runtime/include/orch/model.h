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
///
/// Initialisers make the type constant-initialised: without them the compiler
/// emits a constructor.
struct LoadedMethod {
#if ORCH_INDEX_BYTES == 4
  MethodImage image = {};
#endif
  // Bytes of the state block, 1 if there is none; 0 until the method is ready.
  uint32_t state_used = 0;
};

/// Bytes that a method starts with, and where they belong.
struct InitialBytes {
  void* to;
  const void* from;  ///< nullptr: zeros
  uint32_t count;
};

/// A method that the build has loaded: constant tables, in flash.
struct PrelinkedMethod {
  MethodImage image;
  /// What is written before the first call: values and sizes that calls change,
  /// state of mutable buffers.
  Span<const InitialBytes> initial;
  /// RAM for values and sizes that calls change.
  uint32_t state_bytes;
};

/// A method of a linked model: constant, in flash.
struct ModelMethod {
#if ORCH_INDEX_BYTES == 4
  // For the loader.
  const char* model;
  const char* name;
  Span<const uint8_t> program;  // empty if it is prelinked
  uint32_t method_index;
  Span<uint8_t> state;
  Span<const Span<uint8_t>> arenas;
#endif
  LoadedMethod* loaded;
  const PrelinkedMethod* prelinked;
  /// Makes it ready: `load_linked` or `start_prelinked`. A product has the code
  /// of the one it uses.
  Error (*make_ready)(const ModelMethod& method);
#if ORCH_INDEX_BYTES == 4
  /// Instructions that a run executes, 0 for any number: what is loaded may be
  /// a program from outside, which loops for ever.
  uint32_t max_instructions = 0;
#endif
};

/// The kernels of this product. Defined by the generated
/// registered_kernels.cpp.
extern const KernelTable kRegisteredKernels;

/// Constants outside of the programs of a model.
struct ModelData {
  const char* model;
  Span<const ExternalData> data;
};

/// Those of this product. Defined by generated code, where there are any.
extern const Span<const ModelData> kModelData;

/// Blocks in which arenas of methods overlap. Defined by generated code, where
/// there are any.
extern const Span<const Span<uint8_t>> kCommonArenas;

/// Loads the method out of its program. Errors: WrongFloatMode, those of
/// load_method.
Error load_linked(const ModelMethod& method);

/// Gives a prelinked method the bytes it starts with. Errors: WrongFloatMode.
Error start_prelinked(const ModelMethod& method);

/// Makes the method ready to run, unless it is. Errors: WrongFloatMode, those
/// of load_method.
inline Error prepare(const ModelMethod& method) {
  if (method.loaded->state_used != 0) return Error::Ok;
  return method.make_ready(method);
}

/// What the executor needs of a method that is ready.
inline const MethodImage& image_of(const ModelMethod& method) {
#if ORCH_INDEX_BYTES == 4
  return method.loaded->image;
#else
  return method.prelinked->image;
#endif
}

/// Runs a method that is ready. Errors: those of kernels and delegates,
/// InstructionLimit.
///
/// Always inlined: a tail call of `execute` would hide where a run ends from
/// the emulator that counts its instructions.
__attribute__((always_inline)) inline RunStatus run(const ModelMethod& method) {
#if ORCH_INDEX_BYTES == 4
  return execute(image_of(method), method.max_instructions);
#else
  return execute(image_of(method));
#endif
}

/// Forgets a loaded method: the next call loads it anew, with its initial
/// state.
inline void unload(const ModelMethod& method) { method.loaded->state_used = 0; }

/// Value of an input or output. The method must be loaded and the index in
/// range.
inline Value& input(const ModelMethod& method, uint32_t index) {
  const MethodImage& image = image_of(method);
  return image.values[static_cast<size_t>(image.inputs[index])];
}
inline Value& output(const ModelMethod& method, uint32_t index) {
  const MethodImage& image = image_of(method);
  return image.values[static_cast<size_t>(image.outputs[index])];
}

/// A tensor or None in a list of tensors, which must not be -1 there.
inline Value& item(const ModelMethod& method, const Value& list,
                   uint32_t index) {
  const int32_t at = list.list().tensor_index(index);
  return image_of(method).values[static_cast<size_t>(at)];
}

/// What an API promises of an input or output.
struct Port {
  Tag tag;
  // The rest is said of tensors only.
  ScalarType dtype;
  uint8_t flags;  // of Tensor: kDynamic, kCaller
  uint8_t dim;
  const int32_t* sizes;  // upper bounds if dynamic
  const uint8_t* order;
};

/// Loads the method of the same name out of another program, into the memory of
/// `method`: it runs in its place until `unload`. The bytes are not trusted,
/// are used in place, and must stay where they are.
///
/// Errors: WrongFloatMode; those of Program::open, find_method and load_method;
/// InvalidArgument if inputs and outputs are not those of the API. After an
/// error the method is not loaded: the next call loads the linked program.
Error replace(const ModelMethod& method, Span<const uint8_t> program,
              Span<const Port> inputs, Span<const Port> outputs,
              KernelTable kernels = kRegisteredKernels);

/// Whether a list of tensors in the loaded method is what an API promises.
/// Those of an input have to be `writable`.
bool items_fit(const ModelMethod& method, const Value& list,
               Span<const Port> items, bool writable);

/// Copies a tensor input into place: `data` holds its elements in the dim order
/// of the program, and may lie in an arena, as the output of another method
/// does. Errors: InvalidArgument (sizes), ShapeTooLarge.
Error set_input(const ModelMethod& method, uint32_t index, const void* data,
                Span<const int32_t> sizes);

/// Turns uint8 numbers in the memory of an int8 tensor into int8 ones, smaller
/// by 128, or back.
void flip_signs(Tensor& tensor);

/// Copies a tensor output of at most `capacity` bytes to `data`, and its sizes
/// to `sizes` unless that is null. Errors: ShapeTooLarge.
Error get_output(const ModelMethod& method, uint32_t index, void* data,
                 size_t capacity, int32_t* sizes);

/// The same for a tensor in a list. Errors: as above.
Error write_tensor(Tensor& tensor, const void* data, Span<const int32_t> sizes);
Error read_tensor(const Tensor& tensor, void* data, size_t capacity,
                  int32_t* sizes);

/// An item of an output that is a list of ints; 0 behind its end.
int64_t list_int(const ModelMethod& method, uint32_t index, uint32_t at);

/// Copies an output that is a list of at most `capacity` ints, and tells how
/// many there are. Errors: ShapeTooLarge.
Error get_ints(const ModelMethod& method, uint32_t index, int64_t* items,
               uint32_t capacity, uint32_t* count);

}  // namespace orch
