#include "orch_selected/op_mode.h"

#include "orch/kernel.h"
#include "util/isa.h"
#include "util/reduce.h"

namespace orch::portable {
namespace {

/// Whether `a` is below `b`; NaN is above all numbers.
template <typename N>
bool is_below(N a, N b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

/// Index of the item that is there most often, the last of its kind; the
/// smallest of those that are equally often. No NaN equals another.
///
/// Items that may not be moved are compared with each other.
template <typename T>
ORCH_HOT int32_t index_of_mode(const T* items, int32_t step, int32_t count) {
  int32_t found = count - 1;
  int32_t most = 0;
  // From the end: the first of a kind has all others before it. There must be
  // enough of them left.
  for (int32_t i = count - 1; i >= 0 && i + 1 >= most; --i) {
    const auto item = number_of(items[i * step]);
    int32_t times = 1;
    for (int32_t j = i; j-- > 0;) {
      times += number_of(items[j * step]) == item ? 1 : 0;
    }
    if (times > most ||
        (times == most && is_below(item, number_of(items[found * step])))) {
      found = i;
      most = times;
    }
  }
  return found;
}

}  // namespace

// aten::mode.values(Tensor self, int dim=-1, bool keepdim=False, *,
//   Tensor(a!) values, Tensor(b!) indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error mode_values(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_mode_values;
  return pick_along<kDtypes.bits>(
      args, [](auto* items, const StridedLoop& line) {
        return index_of_mode(items, line.row_stride(0), line.row_size());
      });
}

}  // namespace orch::portable
