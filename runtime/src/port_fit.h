// Whether a value of a program is what an API promises.
#pragma once

#include "orch/model.h"

namespace orch {

inline bool fits(const Value& value, const Port& port) {
  if (value.tag() != port.tag) return false;
  if (!value.is_tensor()) return true;
  const Tensor& tensor = value.tensor();
  const bool dynamic = (tensor.flags & Tensor::kDynamic) != 0;
  if (tensor.dtype != port.dtype || tensor.dim != port.dim ||
      dynamic != port.dynamic) {
    return false;
  }
  for (int i = 0; i < tensor.dim; ++i) {
    if (tensor.size(i) != port.sizes[i] || tensor.order[i] != port.order[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace orch
