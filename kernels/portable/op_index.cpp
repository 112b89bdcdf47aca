#include "orch/kernel.h"
#include "util/check.h"
#include "util/indexing.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::index.Tensor_out(Tensor self, Tensor?[] indices, *, Tensor(a!) out)
//   -> Tensor(a!)
Error index_Tensor_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const TensorList indices = args.tensor_list(1);
  Tensor& out = args.tensor(2);

  Indexing indexing;
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(indexing.read(self, indices));
  ORCH_TRY_DATA(indexing.check());
  ORCH_CHECK(keeps_sizes(indices, out, indexing.sizes()),
             Error::InvalidArgument);
  ORCH_TRY(resize_output(out, indexing.sizes(), self));

  const Strides from(self);
  const Strides to(out);
  StridedLoop loop;
  indexing.for_each_kept(from.at, to.at,
                         [&](int32_t source, int32_t target, int32_t size) {
                           loop.add(size, target, source);
                         });
  if (!loop.valid()) return Error::Ok;
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  if (kFavourSpeed && is_side_by_side(loop) && indexing.only() != nullptr) {
    return indexing.move_all<false>(
        {self.mutable_data<uint8_t>(), from.at[0] * bytes,
         out.mutable_data<uint8_t>(), to.at[0] * bytes,
         static_cast<size_t>(loop.row_size() * bytes)});
  }
  for (int32_t i = 0; i < indexing.positions(); ++i) {
    int32_t source = 0;
    int32_t target = 0;
    // Checks again: where memories overlap, what was written may be an index.
    ORCH_TRY_DATA(indexing.find(i, from.at, to.at, source, target));
    move_rows(loop, self.data<uint8_t>() + source * bytes,
              out.mutable_data<uint8_t>() + target * bytes, out.dtype);
    loop.restart();
  }
  return Error::Ok;
}

}  // namespace orch::portable
