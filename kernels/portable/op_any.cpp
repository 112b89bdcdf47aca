#include "orch_selected/op_any.h"

#include <string.h>

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/reduce.h"

namespace orch::portable {
namespace {

/// Whether any of `count` items is not 0.
template <typename T>
ORCH_HOT bool any_of(const T* item, int32_t step, int32_t count) {
  if constexpr (sizeof(T) == 1) {
    for (; step == 1 && count >= 4; count -= 4) {
      uint32_t word;
      memcpy(&word, item, sizeof word);
      if (word != 0) return true;
      item += 4;
    }
  }
  for (; count > 0; --count) {
    if (number_of(*item) != 0) return true;
    item += step;
  }
  return false;
}

/// Whether any item along some dimensions is not 0, which NaN is not. `dims`: a
/// bit for each; without one every item is a result.
template <uint32_t kBits>
Error any(const Tensor& self, unsigned dims, bool keepdim, Tensor& out) {
  ORCH_CHECK(out.dtype == ScalarType::Bool || out.dtype == ScalarType::Byte,
             Error::InvalidArgument);
  Reduction reduction;
  ORCH_TRY(prepare_reduction(self, dims, keepdim, out, reduction));
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    StridedLoop& kept = reduction.kept;
    StridedLoop& items = reduction.items;
    for (; kept.valid(); kept.next()) {
      for (int32_t i = 0; i < kept.row_size(); ++i) {
        const T* from =
            self.data<T>() + kept.offset(1) + i * kept.row_stride(1);
        bool found = false;
        for (; items.valid(); items.next()) {
          found = found || any_of(from + items.offset(0), items.row_stride(0),
                                  items.row_size());
        }
        if (reduction.count != 0) items.restart();
        // Bool or Byte: a byte that is 0 or 1.
        static_cast<uint8_t*>(
            out.memory)[kept.offset(0) + i * kept.row_stride(0)] = found;
      }
    }
    return Error::Ok;
  });
}

}  // namespace

// aten::any.all_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error any_all_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  constexpr DtypeSet kDtypes = selected::aten_any_all_out;
  return any<kDtypes.bits>(self, (1U << self.dim) - 1, false, args.tensor(1));
}

// aten::any.dims_out(Tensor self, int[]? dim=None, bool keepdim=False, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// None is every dimension, an empty list none.
Error any_dims_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  unsigned dims = (1U << self.dim) - 1;
  if (args.has(1)) {
    ORCH_TRY(read_dims(args.int_list(1), self.dim, dims));
  }
  constexpr DtypeSet kDtypes = selected::aten_any_dims_out;
  return any<kDtypes.bits>(self, dims, args.boolean(2), args.tensor(3));
}

// aten::any.out(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) out)
//   -> Tensor(a!)
Error any_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  constexpr DtypeSet kDtypes = selected::aten_any_out;
  return any<kDtypes.bits>(self, 1U << dim, args.boolean(2), args.tensor(3));
}

}  // namespace orch::portable
