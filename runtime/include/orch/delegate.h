// Delegates: parts of a method that code of the user's runs, instead of
// kernels.
//
// A program says which backend a part is for and brings the bytes that this
// backend made of it. `[[delegates]]` of a profile links the code: a namespace
// with
//
//   orch::Error init(const orch::DelegateHandle& handle,
//                    const orch::CompileSpecs& specs);
//   orch::Error execute(const orch::DelegateHandle& handle,
//                       const orch::Args& args);
//
// docs/delegates.md tells what they may rely on, and what they must check.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "orch/error.h"
#include "orch/scalar_type.h"
#include "orch/span.h"
#include "orch/value.h"

namespace orch {

struct DelegateHandle;

/// One setting that a part was compiled with: bytes of the program.
struct CompileSpec {
  Span<const char> key;  // not terminated
  Span<const uint8_t> value;
};

/// The settings of a part, in the order of the program; read in place.
///
/// The loader has checked that all of them lie inside the program. What they
/// say is not trusted.
class CompileSpecs {
 public:
  constexpr CompileSpecs() = default;
  uint32_t count() const { return count_; }
  /// The index must be in range.
  CompileSpec operator[](uint32_t index) const;
  /// The value of the first one with this key. Errors: NotFound.
  Error find(const char* key, Span<const uint8_t>& value) const;

 private:
  friend class MethodLoader;
  const uint8_t* program_ = nullptr;
  uint32_t program_bytes_ = 0;
  uint32_t at_ = 0;
  uint32_t count_ = 0;
};

/// The code of a backend: one entry of the delegate table (flash).
struct Delegate {
  /// "XnnpackBackend"
  const char* backend;
  /// RAM of each part.
  uint32_t state_bytes;
  /// Makes a part ready; called once when the method is loaded, after the
  /// loader has checked all of the method.
  Error (*init)(const DelegateHandle& handle, const CompileSpecs& specs);
  /// Runs a part: reads and writes its arguments.
  Error (*execute)(const DelegateHandle& handle, const Args& args);
  /// Whether it may call `named`.
  bool named_data = false;
};

/// 0 for sources of a delegate without `named_data = true` in the profile.
#ifndef ORCH_DELEGATE_NAMED_DATA
#define ORCH_DELEGATE_NAMED_DATA 1
#endif

/// One part of a method.
struct DelegateHandle {
  const Delegate* delegate;
  /// What the backend made of the part: bytes of the program, in place, at any
  /// address. Nobody has checked what they say.
  Span<const uint8_t> processed;
  /// `state_bytes` of RAM at a multiple of `kDelegateStateAlignment`, which are
  /// zero at `init` and kept until the method is unloaded; null if 0.
  void* state;

#if ORCH_DELEGATE_NAMED_DATA
  /// The data that the program, or a data file of the model, has under this
  /// key: in place, not copied. Goes through all keys. Where the block lies has
  /// been checked, nobody has checked what it says. The second key is
  /// terminated. Errors: NotFound; InvalidProgram if the key is there twice.
  Error named(Span<const char> key, Span<const uint8_t>& data) const;
  Error named(const char* key, Span<const uint8_t>& data) const;
#endif
};

inline constexpr size_t kDelegateStateAlignment = 8;

/// Delegates of a product.
using DelegateTable = Span<const Delegate>;

/// The delegates of this product. Defined by the generated
/// registered_delegates.cpp of a product that has some.
extern const DelegateTable kRegisteredDelegates;

/// Argument `index` if there is one and it is a tensor of that dtype; else
/// null.
inline const Tensor* tensor_argument(const Args& args, uint32_t index,
                                     ScalarType dtype) {
  if (index >= args.count()) return nullptr;
  const Value& value = args.value(static_cast<int>(index));
  if (!value.is_tensor() || value.tensor().dtype != dtype) return nullptr;
  return &value.tensor();
}

/// Likewise, but null for tensors that must not be written.
inline Tensor* writable_argument(const Args& args, uint32_t index,
                                 ScalarType dtype) {
  const Tensor* const tensor = tensor_argument(args, index, dtype);
  if (tensor == nullptr || (tensor->flags & Tensor::kReadOnly) != 0) {
    return nullptr;
  }
  return &args.tensor(static_cast<int>(index));
}

#ifdef ORCH_DELEGATE_STATE_BYTES
/// The state of a part as what the delegate keeps there, whose size must be
/// what `state` of the profile's `[[delegates]]` says: the build reserves that.
/// `T` has to do with zeros for a start, and is never destroyed.
template <typename T>
T& state_of(const DelegateHandle& handle) {
  static_assert(sizeof(T) == ORCH_DELEGATE_STATE_BYTES,
                "`state` of the profile's [[delegates]] is not sizeof(T)");
  static_assert(alignof(T) <= kDelegateStateAlignment,
                "alignment of the state");
  return *static_cast<T*>(handle.state);
}
#endif

}  // namespace orch
