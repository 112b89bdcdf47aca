#include "orch_selected/op_put.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/flattened.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::put.out(Tensor self, Tensor index, Tensor source,
//   bool accumulate=False, *, Tensor(a!) out) -> Tensor(a!)
//
// Indices are those of the flattened tensor. Values for one item are written,
// or added, in their order.
Error put_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& index = args.tensor(1);
  const Tensor& source = args.tensor(2);
  const bool accumulate = args.boolean(3);
  Tensor& out = args.tensor(4);

  constexpr DtypeSet kDtypes = selected::aten_put_out;
  const int32_t count = index.numel();
  const int32_t size = self.numel();
  ORCH_CHECK(self.dtype == out.dtype && source.dtype == out.dtype &&
                 index.dtype == ScalarType::Long && source.numel() == count,
             Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  const int64_t* const places = index.data<int64_t>();
  for (int32_t i = 0; i < count; ++i) {
    ORCH_CHECK_DATA(places[i] >= -int64_t{size} && places[i] < size,
                    Error::InvalidArgument);
  }
  ORCH_TRY(resize_output(out, self.sizes(), index, source));
  copy_items(self, out);
  const Strides at_index(index);
  const Strides at_source(source);
  const Strides to(out);
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for (int32_t i = 0; i < count; ++i) {
      const int64_t place = places[item_offset(index, at_index, i)];
      const int64_t at = place < 0 ? place + size : place;
      // Where memories overlap, what was written may be an index.
      ORCH_CHECK_DATA(at >= 0 && at < size, Error::InvalidArgument);
      T& item =
          out.mutable_data<T>()[item_offset(out, to, static_cast<int32_t>(at))];
      const T value = source.data<T>()[item_offset(source, at_source, i)];
      item = accumulate ? convert<T>(static_cast<Compute<T>>(item) +
                                     static_cast<Compute<T>>(value))
                        : value;
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
