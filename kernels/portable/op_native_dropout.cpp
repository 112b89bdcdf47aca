#include "orch_selected/op_native_dropout.h"

#include <string.h>

#include "orch/kernel.h"
#include "orch/random.h"
#include "util/broadcast.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/move_items.h"
#include "util/truncate.h"

namespace orch::portable {

// aten::native_dropout.out(Tensor input, float p, bool? train, *,
//   Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))
//
// Draws no numbers where nothing can be dropped.
Error native_dropout_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const double p = args.real(1);
  const bool train = !args.has(2) || args.boolean(2);
  Tensor& out = args.tensor(3);
  Tensor& mask = args.tensor(4);

  constexpr DtypeSet kDtypes = selected::aten_native_dropout_out;
  ORCH_CHECK(p >= 0 && p <= 1, Error::InvalidArgument);
  ORCH_CHECK(input.dtype == out.dtype && mask.dtype == ScalarType::Bool,
             Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(input.dtype), Error::DtypeNotSelected);
  const bool drops = train && p != 0;
  ORCH_CHECK(!drops || kFloating.has(input.dtype), Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, input.sizes()));
  ORCH_TRY(set_sizes(mask, input.sizes()));
  if (!drops) {
    memset(mask.memory, 1, mask.nbytes());
    return move_all(input, out);
  }
  // Kept are items whose number is not below p, in steps of 2^-32.
  const uint64_t least = static_cast<uint64_t>(truncate_wide(p * 0x1p32));
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  StridedLoop loop = loop_over(out, input, mask);
  return switch_dtype<(kDtypes & kFloating).bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const C factor = static_cast<C>(scale);
    for (; loop.valid(); loop.next()) {
      T* to = out.mutable_data<T>() + loop.offset(0);
      const T* from = input.data<T>() + loop.offset(1);
      bool* kept = mask.mutable_data<bool>() + loop.offset(2);
      int32_t left = loop.row_size();
      do {
        const bool keep = orch_random_next() >= least;
        // As in PyTorch, what is dropped keeps its sign, and NaN stays.
        *to = static_cast<T>(static_cast<C>(*from) * static_cast<C>(keep) *
                             factor);
        *kept = keep;
        to += loop.row_stride(0);
        from += loop.row_stride(1);
        kept += loop.row_stride(2);
      } while (--left != 0);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
