#include "orch_selected/op_repeat_interleave.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"

namespace orch::portable {

// aten::repeat_interleave.Tensor_out(Tensor repeats, *,
//   SymInt? output_size=None, Tensor(a!) out) -> Tensor(a!)
Error repeat_interleave_Tensor_out(const Args& args) {
  const Tensor& repeats = args.tensor(0);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(repeats.dim == 1 && repeats.dtype == out.dtype,
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_repeat_interleave_Tensor_out;
  return switch_dtype<kDtypes.bits>(repeats.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const int32_t count = repeats.size(0);
    int64_t total = 0;
    for (int32_t i = 0; i < count; ++i) {
      const int64_t wanted = repeats.data<T>()[i];
      ORCH_CHECK_DATA(wanted >= 0, Error::InvalidArgument);
      ORCH_CHECK_DATA(wanted <= INT32_MAX - total, Error::ShapeTooLarge);
      total += wanted;
    }
    ORCH_CHECK_DATA(!args.has(1) || args.integer(1) == total,
                    Error::InvalidArgument);
    const int32_t size = static_cast<int32_t>(total);
    ORCH_TRY_DATA(resize_counted(out, {&size, 1}, repeats));
    T* target = out.mutable_data<T>();
    int32_t left = size;
    for (int32_t i = 0; i < count; ++i) {
      // Where memories overlap, it may be another number by now.
      const int64_t wanted = repeats.data<T>()[i];
      ORCH_CHECK_DATA(wanted >= 0 && wanted <= left, Error::InvalidArgument);
      left -= static_cast<int32_t>(wanted);
      for (int64_t j = 0; j < wanted; ++j) {
        *target++ = static_cast<T>(i);
        // Runs are short: vectors would take longer to set up.
        asm("" : "+r"(target));
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
