// Complex tensors seen as their real and imaginary parts.
#pragma once

#include "orch/scalar_type.h"
#include "orch/tensor.h"

namespace orch {

/// The dtype of the parts of a complex tensor: ComplexHalf, ComplexFloat and
/// ComplexDouble have the codes of Half, Float and Double, 3 further on.
inline ScalarType dtype_of_parts(const Tensor& tensor) {
  return static_cast<ScalarType>(static_cast<unsigned>(tensor.dtype) - 3);
}
static_assert(static_cast<int>(ScalarType::ComplexHalf) - 3 ==
                      static_cast<int>(ScalarType::Half) &&
                  static_cast<int>(ScalarType::ComplexFloat) - 3 ==
                      static_cast<int>(ScalarType::Float) &&
                  static_cast<int>(ScalarType::ComplexDouble) - 3 ==
                      static_cast<int>(ScalarType::Double),
              "codes of complex dtypes");

}  // namespace orch
