#include "orch_selected/op_scatter_add.h"

#include "orch/kernel.h"
#include "util/along_dim.h"
#include "util/dtype.h"

namespace orch::portable {
namespace {

/// Sums that are computed side by side.
constexpr int32_t kBlock = 32;

/// Adds the items of `src` one after the other.
template <typename T>
Error add_items(AlongDim& along, const Tensor& src, Tensor& out) {
  for (StridedLoop& loop = along.loop; loop.valid(); loop.next()) {
    const T* const from = src.data<T>() + loop.offset(2);
    const int32_t from_step = loop.row_stride(2);
    for (int32_t i = 0, count = loop.row_size(); i < count; ++i) {
      int32_t to;
      ORCH_TRY(along.load(i, to));
      T& item = out.mutable_data<T>()[to];
      item = convert<T>(static_cast<Compute<T>>(item) +
                        static_cast<Compute<T>>(from[i * from_step]));
    }
  }
  return Error::Ok;
}

/// The same with sums that are rounded once, as PyTorch does for halves: a
/// line of `out` along the dimension is summed block by block.
template <typename T>
Error add_lines(const Tensor& index, const Tensor& src, int dim, Tensor& out) {
  const Strides at_index(index);
  const Strides at_src(src);
  const Strides at_out(out);
  const bool flat = out.dim == 0;
  const int32_t size = flat ? 1 : out.size(dim);
  const int32_t count = index.dim == 0 ? 1 : index.size(dim);
  const int32_t index_step = index.dim == 0 ? 0 : at_index[dim];
  const int32_t src_step = src.dim == 0 ? 0 : at_src[dim];
  const int32_t out_step = flat ? 0 : at_out[dim];
  StridedLoop lines;
  for (int d = 0; d < index.dim; ++d) {
    if (d == dim) continue;
    lines.add(index.size(d), at_out[d], at_index[d], at_src[d]);
  }
  for (; lines.valid(); lines.next()) {
    for (int32_t row = 0; row < lines.row_size(); ++row) {
      T* const to =
          out.mutable_data<T>() + lines.offset(0) + row * lines.row_stride(0);
      const int32_t first = lines.offset(1) + row * lines.row_stride(1);
      const T* const from =
          src.data<T>() + lines.offset(2) + row * lines.row_stride(2);
      for (int32_t low = 0; low < size; low += kBlock) {
        const int32_t block = size - low < kBlock ? size - low : kBlock;
        float sums[kBlock];
        for (int32_t i = 0; i < block; ++i) {
          sums[i] = static_cast<float>(to[(low + i) * out_step]);
        }
        for (int32_t i = 0; i < count; ++i) {
          const int64_t at = load_index(index, first + i * index_step) - low;
          if (at >= 0 && at < block) {
            sums[at] += static_cast<float>(from[i * src_step]);
          }
        }
        for (int32_t i = 0; i < block; ++i) {
          to[(low + i) * out_step] = static_cast<T>(sums[i]);
        }
      }
    }
  }
  return Error::Ok;
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
  ORCH_TRY(copy_to_scatter(self, dim, index, &src, out));
  if (index.numel() == 0) return Error::Ok;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (kIsHalf<T>) {
      int along;
      ORCH_TRY(read_dim(dim, out.dim, along));
      return add_lines<T>(index, src, along, out);
    } else {
      AlongDim along(out, dim, index, src);
      return add_items<T>(along, src, out);
    }
  });
}

}  // namespace orch::portable
