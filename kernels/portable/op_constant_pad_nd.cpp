#include "orch_selected/op_constant_pad_nd.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/fill.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::constant_pad_nd.out(Tensor self, SymInt[] pad, Scalar value=0, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// Pairs of `pad` begin at the last dimension; a negative number cuts items off.
Error constant_pad_nd_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList pad = args.int_list(1);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_CHECK(pad.size() % 2 == 0 && pad.size() / 2 <= self.dim,
             Error::InvalidArgument);
  ItemView view = items_of(self);
  int32_t before[kMaxDim] = {};
  int32_t kept[kMaxDim];  // items of self
  int32_t sizes[kMaxDim];
  for (int d = 0; d < self.dim; ++d) {
    kept[d] = self.size(d);
    sizes[d] = kept[d];
    const int pair = self.dim - 1 - d;
    if (pair >= pad.size() / 2) continue;
    int32_t after = 0;
    ORCH_TRY(read_int(pad[2 * pair], -kMaxExtent, before[d]));
    ORCH_TRY(read_int(pad[2 * pair + 1], -kMaxExtent, after));
    const int32_t cut = before[d] < 0 ? -before[d] : 0;
    const int32_t cut_after = after < 0 ? -after : 0;
    ORCH_CHECK(cut <= kept[d] && cut_after <= kept[d] - cut,
               Error::InvalidArgument);
    kept[d] -= cut + cut_after;
    view.offset += cut * view.stride[d];
    before[d] += cut;
    after += cut_after;
    const int64_t size = int64_t{kept[d]} + before[d] + after;
    ORCH_CHECK(size <= INT32_MAX, Error::ShapeTooLarge);
    sizes[d] = static_cast<int32_t>(size);
  }
  constexpr DtypeSet kDtypes = selected::aten_constant_pad_nd_out;
  ItemBits<kDtypes.bits> item{};
  ORCH_TRY(item_bits<kDtypes.bits>(out.dtype, args.scalar(2), item));
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));

  const Strides to(out);
  const ItemView constant{};  // the same item everywhere
  int32_t offset = 0;
  // What comes before and after the items of self in a dimension, where the
  // dimensions outside of it are in these.
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    const int32_t after = sizes[d] - before[d] - kept[d];
    sizes[d] = before[d];
    move_between(out, offset, to.at, sizes, &item, constant);
    offset += before[d] * to[d];
    sizes[d] = after;
    move_between(out, offset + kept[d] * to[d], to.at, sizes, &item, constant);
    sizes[d] = kept[d];
  }
  move_between(out, offset, to.at, sizes, self.memory, view);
  return Error::Ok;
}

}  // namespace orch::portable
