#include "orch_selected/op_unique_consecutive.h"

#include "orch/kernel.h"
#include "util/distinct.h"

namespace orch::portable {
namespace {

/// The items of each run of equal ones, by index whatever the dim order. NaN
/// equals nothing.
template <typename T>
Error find_runs(const Distinct& distinct) {
  const Tensor& self = distinct.self;
  const Strides from(self);
  const int32_t size = self.numel();
  const auto begins = [&](int32_t i) {
    const T* const items = self.data<T>();
    return i == 0 || number_of(items[item_offset(self, from, i)]) !=
                         number_of(items[item_offset(self, from, i - 1)]);
  };
  int32_t count = 0;
  for (int32_t i = 0; i < size; ++i) count += begins(i) ? 1 : 0;
  ORCH_TRY_DATA(distinct.resize(count));
  const Strides to(distinct.inverse);
  int64_t* const counts = distinct.counts.mutable_data<int64_t>();
  int32_t run = -1;
  for (int32_t i = 0; i < size; ++i) {
    if (begins(i)) {
      // Where memories overlap, items may change.
      ORCH_CHECK_DATA(++run < count, Error::InvalidArgument);
      const T item = self.data<T>()[item_offset(self, from, i)];
      distinct.items.mutable_data<T>()[run] = item;
      if (distinct.has_counts) counts[run] = 0;
    }
    if (distinct.has_counts) ++counts[run];
    if (distinct.has_inverse) {
      distinct.inverse
          .mutable_data<int64_t>()[item_offset(distinct.inverse, to, i)] = run;
    }
  }
  return Error::Ok;
}

}  // namespace

// aten::unique_consecutive.out(Tensor self, bool return_inverse=False,
//   bool return_counts=False, int? dim=None, *, Tensor(a!) out0,
//   Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))
//
// Of all items as one row.
Error unique_consecutive_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Distinct distinct = {self,           args.boolean(1), args.boolean(2),
                             args.tensor(4), args.tensor(5),  args.tensor(6)};
  ORCH_TRY(distinct.check());
  ORCH_CHECK(!args.has(3) || (args.integer(3) == 0 && self.dim == 1),
             Error::NotSupported);
  constexpr DtypeSet kDtypes = selected::aten_unique_consecutive_out;
  ORCH_TRY_DATA(switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    return find_runs<typename decltype(type)::type>(distinct);
  }));
  return Error::Ok;
}

}  // namespace orch::portable
