#include "orch/model.h"

#include <string.h>

#include "port_fit.h"
#include "switches.h"

namespace orch {
namespace {

/// WrongFloatMode if floats give other bits than on a core after its reset.
///
/// Sources: FPSCR in the Armv7-M and Armv8-M Architecture Reference Manuals;
/// frm in the RISC-V Instruction Set Manual, volume I.
Error check_floats() {
  // Sources of a package may be compiled without the FPU.
#if ORCH_CHECKS_FLOATS && defined(__ARM_FP)
  // AHP, FZ and RMode, and FZ16 where it is not reserved. DN changes no number:
  // only which NaN an operation gives.
  constexpr uint32_t kHalves =
#if defined(__ARM_ARCH_8_1M_MAIN__)
      1U << 19;
#else
      0;
#endif
  constexpr uint32_t kModes = 1U << 26 | 1U << 24 | 3U << 22 | kHalves;
  uint32_t modes;
  asm volatile("vmrs %0, fpscr" : "=r"(modes));
  return (modes & kModes) == 0 ? Error::Ok : Error::WrongFloatMode;
#elif ORCH_CHECKS_FLOATS && defined(__riscv_flen)
  uintptr_t rounding;
  asm volatile("frrm %0" : "=r"(rounding));
  return rounding == 0 ? Error::Ok : Error::WrongFloatMode;
#else
  return Error::Ok;
#endif
}

}  // namespace

// Compact tables have no loader beside them.
#if ORCH_INDEX_BYTES == 4
namespace {

/// Whether it is made ready together with methods that share its state.
bool shares(const ModelMethod& method) {
  return method.make_ready != load_linked;
}

#if ORCH_EXTERNAL_DATA
bool same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

MethodMemory memory_of(const ModelMethod& method) {
  for (const ModelData& model : kModelData) {
    if (same_text(model.model, method.model)) {
      return {method.state, method.arenas, model.data, shares(method)};
    }
  }
  return {method.state, method.arenas, {}, shares(method)};
}
#else
MethodMemory memory_of(const ModelMethod& method) {
  return {method.state, method.arenas, shares(method)};
}
#endif

}  // namespace

Error load_linked(const ModelMethod& method) {
  ORCH_TRY(check_floats());
  LoadedMethod& loaded = *method.loaded;
  Program program;
  ORCH_TRY(Program::open(method.program, program));
  size_t used = 0;
  ORCH_TRY(load_method(program, method.method_index, kRegisteredKernels,
                       memory_of(method), loaded.image, used));
  loaded.state_used = static_cast<uint32_t>(used);
  return Error::Ok;
}
#endif

Error start_prelinked(const ModelMethod& method) {
  ORCH_TRY(check_floats());
  if constexpr (kInitialBytes) {
    for (const InitialBytes& bytes : method.prelinked->initial) {
      if (kInitialZeros && bytes.from == nullptr) {
        memset(bytes.to, 0, bytes.count);
      } else {
        memcpy(bytes.to, bytes.from, bytes.count);
      }
    }
  }
#if ORCH_INDEX_BYTES == 4
  method.loaded->image = method.prelinked->image;
#endif
  const uint32_t bytes = kInitialBytes ? method.prelinked->state_bytes : 0;
  method.loaded->state_used = bytes == 0 ? 1 : bytes;
  return Error::Ok;
}

#if ORCH_INDEX_BYTES == 4
namespace {

/// Flags of an input or output that matter to the API. An output that is an
/// input of the caller, or an earlier output, is read where that is.
uint8_t port_mask(const MethodImage& image, Span<const ValueIndex> indices,
                  size_t at) {
  const Value& value = image.values[static_cast<size_t>(indices[at])];
  if (!kCallerIo || !value.is_tensor()) return Tensor::kDynamic;
  if (indices.data() == image.outputs.data()) {
    if ((value.tensor().flags & Tensor::kReadOnly) != 0) {
      return Tensor::kDynamic;
    }
    for (size_t i = 0; i < at; ++i) {
      if (indices[i] == indices[at]) return Tensor::kDynamic;
    }
  }
  return Tensor::kDynamic | Tensor::kCaller;
}

bool fit(const MethodImage& image, Span<const ValueIndex> indices,
         Span<const Port> ports) {
  if (indices.size() != ports.size()) return false;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Value& value = image.values[static_cast<size_t>(indices[i])];
    const uint8_t mask = port_mask(image, indices, i);
    if (!fits(value, ports[i], mask)) return false;
  }
  return true;
}

}  // namespace

Error replace(const ModelMethod& method, Span<const uint8_t> bytes,
              Span<const Port> inputs, Span<const Port> outputs,
              KernelTable kernels) {
  unload(method);
  ORCH_TRY(check_floats());
  LoadedMethod& loaded = *method.loaded;
  Program program;
  ORCH_TRY(Program::open(bytes, program));
  uint32_t index = 0;
  ORCH_TRY(program.find_method(method.name, index));
  size_t used = 0;
  ORCH_TRY(load_method(program, index, kernels, memory_of(method), loaded.image,
                       used));
  // The API copies as many bytes as it promised.
  ORCH_CHECK(fit(loaded.image, loaded.image.inputs, inputs) &&
                 fit(loaded.image, loaded.image.outputs, outputs),
             Error::InvalidArgument);
  // A method of no values and no instructions is ready, too.
  loaded.state_used = used == 0 ? 1 : static_cast<uint32_t>(used);
  return Error::Ok;
}
#endif

Error set_input(const ModelMethod& method, uint32_t index, const void* data,
                Span<const int32_t> sizes) {
  Tensor& tensor = input(method, index).tensor();
  ORCH_TRY(resize(tensor, sizes));
  const size_t bytes = tensor.nbytes();
  if (bytes != 0) memmove(tensor.memory, data, bytes);
  return Error::Ok;
}

void flip_signs(Tensor& tensor) {
  uint8_t* item = tensor.mutable_data<uint8_t>();
  const uint8_t* const end = item + tensor.nbytes();
  for (; end - item >= 4; item += 4) {
    uint32_t word;
    memcpy(&word, item, sizeof word);
    word ^= 0x80808080U;
    memcpy(item, &word, sizeof word);
  }
  for (; item != end; ++item) *item ^= 0x80U;
}

Error get_output(const ModelMethod& method, uint32_t index, void* data,
                 size_t capacity, int32_t* sizes) {
  const Tensor& tensor = output(method, index).tensor();
  const size_t bytes = tensor.nbytes();
  ORCH_CHECK(bytes <= capacity, Error::ShapeTooLarge);
  if (bytes != 0) memmove(data, tensor.memory, bytes);
  if (sizes != nullptr) {
    for (int i = 0; i < tensor.dim; ++i) sizes[i] = tensor.size(i);
  }
  return Error::Ok;
}

}  // namespace orch
