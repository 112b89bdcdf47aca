#include "orch_selected/op_scatter_add.h"

#include "orch/kernel.h"
#include "util/along_dim.h"
#include "util/dtype.h"
#include "util/fold_lines.h"

namespace orch::portable {
namespace {

/// Adds the items of `src` one after the other.
template <typename T>
Error add_items(AlongDim& along, const Tensor& src, Tensor& out) {
  const T* const from = src.data<T>();
  T* const to = out.mutable_data<T>();
  return along.each([from, to](int32_t at, int32_t k) {
    to[at] = convert<T>(static_cast<Compute<T>>(to[at]) +
                        static_cast<Compute<T>>(from[k]));
  });
}

}  // namespace

// aten::scatter_add.out(Tensor self, int dim, Tensor index, Tensor src, *,
//   Tensor(a!) out) -> Tensor(a!)
Error scatter_add_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t dim = args.integer(1);
  const Tensor& index = args.tensor(2);
  const Tensor& src = args.tensor(3);
  Tensor& out = args.tensor(4);

  constexpr DtypeSet kDtypes = selected::aten_scatter_add_out;
  ORCH_CHECK(src.dtype == out.dtype, Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  ORCH_TRY_DATA(copy_to_scatter(self, dim, index, &src, out));
  if (index.numel() == 0) return Error::Ok;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (kIsHalf<T>) {
      // PyTorch rounds such sums once.
      int along;
      ORCH_TRY(read_dim(dim, out.dim, along));
      fold_lines<T>(
          index, src, along, true, out,
          [](float sum, float item) { return sum + item; },
          [](float sum, int32_t) { return sum; });
      return Error::Ok;
    } else {
      AlongDim along(out, dim, index, src);
      return add_items<T>(along, src, out);
    }
  });
}

}  // namespace orch::portable
