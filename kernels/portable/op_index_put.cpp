#include "orch_selected/op_index_put.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/check.h"
#include "util/indexing.h"
#include "util/move_items.h"

namespace orch::portable {
namespace {

/// to[...] += from[...] for all rows of a loop like that of move_rows.
template <typename T>
void add_rows(StridedLoop& loop, const T* from, T* to) {
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      T& item = to[loop.offset(0) + i * loop.row_stride(0)];
      const T value = from[loop.offset(1) + i * loop.row_stride(1)];
      item = convert<T>(static_cast<Compute<T>>(item) +
                        static_cast<Compute<T>>(value));
    }
  }
}

/// Strides of `values` by the dimensions that it is broadcast to. Errors:
/// InvalidArgument (it cannot be).
Error broadcast_strides(const Tensor& values, Span<const int32_t> sizes,
                        int32_t* strides) {
  const int rank = static_cast<int>(sizes.size());
  ORCH_CHECK(values.dim <= rank, Error::InvalidArgument);
  const Strides own(values);
  for (int i = 0; i < rank; ++i) {
    const int at = i - (rank - values.dim);
    ORCH_CHECK(at < 0 || values.size(at) == 1 ||
                   values.size(at) == sizes[static_cast<size_t>(i)],
               Error::InvalidArgument);
    strides[i] = broadcast_stride(values, own, i, rank);
  }
  return Error::Ok;
}

/// Puts `values` into `out` at the indices. kBits: dtypes of `out`. Errors:
/// InvalidArgument (an index has changed).
template <uint32_t kBits>
Error put(Indexing& indexing, const int32_t* from, const Tensor& values,
          bool accumulate, Tensor& out) {
  const Strides to(out);
  StridedLoop loop;
  indexing.for_each_kept(to.at, from,
                         [&](int32_t target, int32_t source, int32_t size) {
                           loop.add(size, target, source);
                         });
  if (!loop.valid()) return Error::Ok;
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  if (kFavourSpeed && !accumulate && is_side_by_side(loop) &&
      indexing.only() != nullptr) {
    return indexing.move_all<true>(
        {out.mutable_data<uint8_t>(), to.at[0] * bytes,
         values.mutable_data<uint8_t>(), from[0] * bytes,
         static_cast<size_t>(loop.row_size() * bytes)});
  }
  for (int32_t i = 0; i < indexing.positions(); ++i) {
    int32_t source = 0;
    int32_t target = 0;
    // Checks again: where memories overlap, what was written may be an index.
    ORCH_TRY_DATA(indexing.find(i, to.at, from, target, source));
    if (accumulate) {
      ORCH_TRY(switch_dtype<kBits>(out.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        add_rows(loop, values.data<T>() + source,
                 out.mutable_data<T>() + target);
        return Error::Ok;
      }));
    } else {
      move_rows(loop, values.data<uint8_t>() + source * bytes,
                out.mutable_data<uint8_t>() + target * bytes, out.dtype);
    }
    loop.restart();
  }
  return Error::Ok;
}

}  // namespace

// aten::index_put.out(Tensor self, Tensor?[] indices, Tensor values,
//   bool accumulate=False, *, Tensor(a!) out) -> Tensor(a!)
//
// Values for one item are written, or added, in their order.
Error index_put_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const TensorList indices = args.tensor_list(1);
  const Tensor& values = args.tensor(2);
  Tensor& out = args.tensor(4);

  constexpr DtypeSet kDtypes = selected::aten_index_put_out;
  Indexing indexing;
  int32_t from[kMaxDim];
  ORCH_CHECK(self.dtype == out.dtype && values.dtype == out.dtype,
             Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  ORCH_TRY(indexing.read(self, indices));
  ORCH_TRY(broadcast_strides(values, indexing.sizes(), from));
  ORCH_TRY_DATA(indexing.check());
  // The sizes of an input that shares them with the output must stay, but may
  // be others than those of `self`.
  ORCH_CHECK(keeps_sizes(indices, out, self.sizes()) &&
                 keeps_sizes(values, out, self.sizes()),
             Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  copy_items(self, out);
  return put<kDtypes.bits>(indexing, from, values, args.boolean(3), out);
}

// aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values,
//   bool accumulate=False) -> Tensor(a!)
Error index_put_(const Args& args) {
  Tensor& self = args.tensor(0);
  const TensorList indices = args.tensor_list(1);
  const Tensor& values = args.tensor(2);

  constexpr DtypeSet kDtypes = selected::aten_index_put_;
  Indexing indexing;
  int32_t from[kMaxDim];
  ORCH_CHECK(values.dtype == self.dtype, Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  ORCH_TRY(indexing.read(self, indices));
  ORCH_TRY(broadcast_strides(values, indexing.sizes(), from));
  ORCH_TRY_DATA(indexing.check());
  return put<kDtypes.bits>(indexing, from, values, args.boolean(3), self);
}

}  // namespace orch::portable
