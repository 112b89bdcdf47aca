#include "orch_selected/op_cumsum.h"

#include "orch/kernel.h"
#include "util/lines.h"
#include "util/reduce.h"

namespace orch::portable {

// aten::cumsum.out(Tensor self, int dim, *, ScalarType? dtype=None,
//   Tensor(a!) out) -> Tensor(a!)
//
// Items are converted to the dtype of the output first.
Error cumsum_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(3);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_TRY(check_out_dtype(args, 2, out));
  ORCH_TRY(set_sizes(out, self.sizes()));
  constexpr DtypeSet kDtypes = selected::aten_cumsum_out;
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  Lines lines(self, dim, out, out);
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const int32_t to_step = lines.step[0];
    const int32_t from_step = lines.step[1];
    each_line(lines, [&](int32_t to, int32_t from, int32_t) {
      T* result = out.mutable_data<T>() + to;
      C sum = 0;
      if (kDtypes.single() || self.dtype == out.dtype) {
        const T* item = self.data<T>() + from;
        for (int32_t left = lines.size; left > 0; --left) {
          sum += static_cast<C>(*item);
          *result = convert<T>(sum);
          item += from_step;
          result += to_step;
        }
      } else if constexpr (!kDtypes.single()) {
        for (int32_t left = lines.size; left > 0; --left) {
          sum += static_cast<C>(
              load_cast<T, kDtypes.bits>(self.dtype, self.memory, from));
          *result = convert<T>(sum);
          from += from_step;
          result += to_step;
        }
      }
    });
    return Error::Ok;
  });
}

}  // namespace orch::portable
