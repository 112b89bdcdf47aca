#include "orch_selected/op_bucketize.h"

#include "orch/kernel.h"
#include "util/boundaries.h"

namespace orch::portable {

// aten::bucketize.Scalar_out(Scalar self, Tensor boundaries, *,
//   bool out_int32=False, bool right=False, Tensor(a!) out) -> Tensor(a!)
Error bucketize_Scalar_out(const Args& args) {
  const Tensor& boundaries = args.tensor(1);
  ORCH_CHECK(boundaries.dim == 1, Error::InvalidArgument);
  const Search search = {boundaries, nullptr, nullptr, &args.scalar(0),
                         args.boolean(3)};
  constexpr DtypeSet kDtypes = selected::aten_bucketize_Scalar_out;
  return search_sorted_number<kDtypes.bits>(search, args.boolean(2),
                                            args.tensor(4));
}

// aten::bucketize.Tensor_out(Tensor self, Tensor boundaries, *,
//   bool out_int32=False, bool right=False, Tensor(a!) out) -> Tensor(a!)
Error bucketize_Tensor_out(const Args& args) {
  const Tensor& boundaries = args.tensor(1);
  ORCH_CHECK(boundaries.dim == 1, Error::InvalidArgument);
  const Search search = {boundaries, nullptr, &args.tensor(0), nullptr,
                         args.boolean(3)};
  constexpr DtypeSet kDtypes = selected::aten_bucketize_Tensor_out;
  return search_sorted<kDtypes.bits>(search, args.boolean(2), args.tensor(4));
}

}  // namespace orch::portable
