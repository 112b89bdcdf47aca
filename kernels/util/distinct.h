// Operators that give each of several equal items once.
#pragma once

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/flattened.h"

namespace orch {

/// aten::<op>.out(Tensor self, ..., bool return_inverse, bool return_counts,
///   ..., Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2)
///
/// What such operators write: `items`, which of them each item of `self` is,
/// and how often each is there. The last two are empty unless they are wanted.
struct Distinct {
  const Tensor& self;
  bool has_inverse;
  bool has_counts;
  Tensor& items;
  Tensor& inverse;
  Tensor& counts;

  /// Errors: InvalidArgument.
  Error check() const {
    ORCH_CHECK(items.dtype == self.dtype && inverse.dtype == ScalarType::Long &&
                   counts.dtype == ScalarType::Long,
               Error::InvalidArgument);
    return Error::Ok;
  }

  /// Gives the outputs the sizes for `count` different items. Errors:
  /// InvalidArgument, ShapeTooLarge.
  Error resize(int32_t count) const {
    const int32_t none = 0;
    const Span<const int32_t> empty{&none, 1};
    ORCH_TRY_DATA(resize_counted(items, {&count, 1}, self));
    ORCH_TRY(resize_output(inverse, has_inverse ? self.sizes() : empty, self,
                           items));
    return resize_counted(counts, {has_counts ? &count : &none, 1}, self, items,
                          inverse);
  }
};

}  // namespace orch
