#include "orch_selected/op_searchsorted.h"

#include "orch/kernel.h"
#include "util/boundaries.h"
#include "util/word.h"

namespace orch::portable {
namespace {

/// Whether places are behind equal boundaries, by `bool right` and `str? side`.
/// Errors: InvalidArgument.
Error read_side(const Args& args, bool& is_behind) {
  is_behind = args.boolean(3);
  if (!args.has(4)) return Error::Ok;
  const List& side = args.value(4).list();
  ORCH_CHECK(is_word(side, "right") || (is_word(side, "left") && !is_behind),
             Error::InvalidArgument);
  is_behind = is_word(side, "right");
  return Error::Ok;
}

}  // namespace

// aten::searchsorted.Scalar_out(Tensor sorted_sequence, Scalar self, *,
//   bool out_int32=False, bool right=False, str? side=None,
//   Tensor? sorter=None, Tensor(a!) out) -> Tensor(a!)
Error searchsorted_Scalar_out(const Args& args) {
  bool is_behind = false;
  ORCH_TRY(read_side(args, is_behind));
  const Search search = {args.tensor(0), args.optional_tensor(5), nullptr,
                         &args.scalar(1), is_behind};
  constexpr DtypeSet kDtypes = selected::aten_searchsorted_Scalar_out;
  ORCH_TRY_DATA(search_sorted_number<kDtypes.bits>(search, args.boolean(2),
                                                   args.tensor(6)));
  return Error::Ok;
}

// aten::searchsorted.Tensor_out(Tensor sorted_sequence, Tensor self, *,
//   bool out_int32=False, bool right=False, str? side=None,
//   Tensor? sorter=None, Tensor(a!) out) -> Tensor(a!)
Error searchsorted_Tensor_out(const Args& args) {
  bool is_behind = false;
  ORCH_TRY(read_side(args, is_behind));
  const Search search = {args.tensor(0), args.optional_tensor(5),
                         &args.tensor(1), nullptr, is_behind};
  constexpr DtypeSet kDtypes = selected::aten_searchsorted_Tensor_out;
  ORCH_TRY_DATA(
      search_sorted<kDtypes.bits>(search, args.boolean(2), args.tensor(6)));
  return Error::Ok;
}

}  // namespace orch::portable
