// Type promotion between tensors.
#pragma once

#include "orch/scalar_type.h"
#include "orch/tensor.h"

namespace orch {

/// The dtype that holds both. Source: PyTorch, torch.promote_types.
constexpr ScalarType promote(ScalarType a, ScalarType b) {
  if (a == b || b == ScalarType::Bool) return a;
  if (a == ScalarType::Bool) return b;
  if (kFloating.has(a) && kFloating.has(b)) {
    const bool wide = a == ScalarType::Double || b == ScalarType::Double;
    return wide ? ScalarType::Double : ScalarType::Float;
  }
  if (kFloating.has(a)) return a;
  if (kFloating.has(b)) return b;
  const ScalarType low = a < b ? a : b;
  const ScalarType high = a < b ? b : a;
  // Codes of the integers ascend with their size, but Char cannot hold Byte.
  if (low == ScalarType::Byte && high == ScalarType::Char) {
    return ScalarType::Short;
  }
  return high;
}

/// A set of dtypes and everything two of them can promote to.
constexpr DtypeSet with_promoted(DtypeSet set) {
  if (set.has(ScalarType::Byte) && set.has(ScalarType::Char)) {
    set = set | dtype_set(ScalarType::Short);
  }
  if (set.has(ScalarType::Half) && set.has(ScalarType::BFloat16)) {
    set = set | dtype_set(ScalarType::Float);
  }
  return set;
}

/// 0 for Bool, 1 for integers, 2 for floats.
constexpr int dtype_category(ScalarType dtype) {
  return dtype == ScalarType::Bool ? 0 : kFloating.has(dtype) ? 2 : 1;
}

/// The dtype of `a + b`: a tensor without dimensions counts only where its
/// category is higher. Source: PyTorch, torch.result_type.
inline ScalarType result_type(const Tensor& a, const Tensor& b) {
  if ((a.dim == 0) != (b.dim == 0)) {
    const ScalarType strong = a.dim == 0 ? b.dtype : a.dtype;
    const ScalarType weak = a.dim == 0 ? a.dtype : b.dtype;
    if (dtype_category(weak) <= dtype_category(strong)) return strong;
  }
  return promote(a.dtype, b.dtype);
}

/// The same for three tensors.
inline ScalarType result_type(const Tensor* const (&tensors)[3]) {
  ScalarType strong = ScalarType::Bool;  // of those that have dimensions
  ScalarType weak = ScalarType::Bool;
  for (const Tensor* tensor : tensors) {
    ScalarType& dtype = tensor->dim == 0 ? weak : strong;
    dtype = promote(dtype, tensor->dtype);
  }
  return dtype_category(weak) <= dtype_category(strong) ? strong : weak;
}

/// Whether a result may be stored in an out tensor of this dtype: categories
/// must not fall. Source: PyTorch, torch.can_cast.
constexpr bool can_cast(ScalarType from, ScalarType to) {
  return dtype_category(from) <= dtype_category(to);
}

/// Those dtypes of `set` that can be cast to (from) the only dtype of `one`.
/// Complex numbers do not mix with others, as in ExecuTorch.
constexpr DtypeSet castable_from(DtypeSet set, DtypeSet one) {
  if ((one & kComplex).bits != 0) return set & one;
  set = {set.bits & ~kComplex.bits};
  if ((one & kFloating).bits != 0) return set;
  if ((one & kBool).bits != 0) return set & kBool;
  return {set.bits & ~kFloating.bits};
}
constexpr DtypeSet castable_to(DtypeSet set, DtypeSet one) {
  if ((one & kComplex).bits != 0) return set & one;
  set = {set.bits & ~kComplex.bits};
  if ((one & kBool).bits != 0) return set;
  if ((one & kFloating).bits != 0) return set & kFloating;
  return {set.bits & ~kBool.bits};
}

/// Whether a dtype of `set` is not the only one of `one`.
constexpr bool converts(DtypeSet set, DtypeSet one) {
  return (set.bits & ~one.bits) != 0;
}

/// Those dtypes of `common` whose results `out` can hold.
constexpr DtypeSet usable(DtypeSet common, DtypeSet out) {
  DtypeSet found;
  for (unsigned code = 0; code < 32; ++code) {
    const DtypeSet one{common.bits & uint32_t{1} << code};
    if (castable_to(out, one).bits != 0) found = found | one;
  }
  return found;
}

/// The dtypes that functions of real numbers compute in: integers become Float.
constexpr DtypeSet computed_in_floats(DtypeSet set) {
  const bool whole = (set.bits & ~kFloating.bits) != 0;
  return (with_promoted(set) & kFloating) |
         (whole ? dtype_set(ScalarType::Float) : DtypeSet{});
}

}  // namespace orch
