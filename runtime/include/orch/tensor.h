// Tensors: a dtype, sizes, a dim order and memory that somebody else owns.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "orch/error.h"
#include "orch/favour.h"
#include "orch/index.h"
#include "orch/scalar_type.h"
#include "orch/span.h"

namespace orch {

/// Of functions whose code is there once where flash counts.
#if !ORCH_FAVOUR_SPEED
#define ORCH_ONCE __attribute__((noinline))
#else
#define ORCH_ONCE
#endif

/// Most dimensions a tensor can have.
inline constexpr int kMaxDim = 8;

/// What a value holds. It is never changed after load.
enum class Tag : uint8_t {
  None,
  Tensor,
  Int,
  Double,
  Bool,
  String,
  IntList,
  DoubleList,
  BoolList,
  TensorList,
};

/// The dim order 0, 1, 2, ...
inline constexpr uint8_t kInOrder[kMaxDim] = {0, 1, 2, 3, 4, 5, 6, 7};

/// A tensor: 16 bytes on a 32-bit core, 12 in compact tables. Sizes and dim
/// order of a static tensor lie in flash. Strides follow from sizes and dim
/// order.
///
/// Trusted by kernels: the loader has checked that dtype, rank, dim order and
/// the memory behind `data` agree, and that the memory is aligned to the item
/// size.
struct Tensor {
  Tag tag;  // Tag::Tensor
  ScalarType dtype;
  uint8_t dim;    // number of dimensions
  uint8_t flags;  // kDynamic, kContiguous, ...
  void* memory;
  const int32_t* dims;
#if ORCH_INDEX_BYTES == 4
  const uint8_t* dim_order;
#endif

  /// Sizes may change up to a capacity; they lie in the method state, after the
  /// capacity in bytes.
  static constexpr uint8_t kDynamic = 1;
  /// The dim order is 0, 1, 2, ...
  static constexpr uint8_t kContiguous = 2;
  /// Must not be written: a constant of the program, or a value that may become
  /// one.
  static constexpr uint8_t kReadOnly = 4;
  /// An input or output in memory of the caller: `memory` is null until it is
  /// set (orch/caller.h).
  static constexpr uint8_t kCaller = 8;

  Span<const int32_t> sizes() const { return {dims, dim}; }
  int32_t size(int index) const { return dims[index]; }
  bool contiguous() const { return (flags & kContiguous) != 0; }
  /// Dimensions from outermost to innermost in memory, `dim` of them.
  const uint8_t* order() const {
#if ORCH_INDEX_BYTES == 4
    return dim_order;
#else
    // Where it is not in order it lies behind the sizes.
    return contiguous() ? kInOrder
                        : reinterpret_cast<const uint8_t*>(dims + dim);
#endif
  }
  /// Number of elements. Cannot overflow: checked at load.
  ORCH_ONCE int32_t numel() const {
    int32_t count = 1;
    for (int i = 0; i < dim; ++i) count *= dims[i];
    return count;
  }
  /// Size of the memory in bytes at the current sizes.
  size_t nbytes() const {
    return static_cast<size_t>(numel()) * item_bytes(dtype);
  }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(memory);
  }
  template <typename T>
  T* mutable_data() const {
    return static_cast<T*>(memory);
  }
};

/// Strides in elements, by logical dimension; dense in the tensor's dim order.
struct Strides {
  int32_t at[kMaxDim];
  explicit Strides(const Tensor& tensor);
  int32_t operator[](int index) const { return at[index]; }
};

/// Gives `tensor` new sizes. A static tensor accepts only the sizes it has.
/// Errors: InvalidArgument (rank, or sizes of a static tensor differ),
/// ShapeTooLarge (more than the planned size).
Error resize(Tensor& tensor, Span<const int32_t> sizes);

/// Whether both have the same rank and sizes.
bool same_sizes(const Tensor& a, const Tensor& b);

/// Whether both lay their elements out alike: same rank and dim order.
bool same_layout(const Tensor& a, const Tensor& b);

}  // namespace orch
