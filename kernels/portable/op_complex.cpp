#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/check.h"
#include "util/move_items.h"
#include "util/parts.h"

namespace orch::portable {

// aten::complex.out(Tensor real, Tensor imag, *, Tensor(a!) out) -> Tensor(a!)
Error complex_out(const Args& args) {
  const Tensor& real = args.tensor(0);
  const Tensor& imag = args.tensor(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(kComplex.has(out.dtype) && real.dtype == dtype_of_parts(out) &&
                 imag.dtype == real.dtype,
             Error::InvalidArgument);
  ORCH_TRY(resize_broadcast(out, real, imag));
  const Strides to(out);
  uint8_t* target = out.mutable_data<uint8_t>();
  const Tensor* const parts[] = {&real, &imag};
  for (const Tensor* part : parts) {
    const Strides from(*part);
    StridedLoop loop;
    for (int i = 0; i < out.dim; ++i) {
      const int d = out.order()[i];
      loop.add(out.size(d), 2 * to[d],
               broadcast_stride(*part, from, d, out.dim));
    }
    move_rows(loop, part->memory, target, real.dtype);
    target += item_bytes(real.dtype);
  }
  return Error::Ok;
}

}  // namespace orch::portable
