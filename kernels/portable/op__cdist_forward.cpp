#include "orch_selected/op__cdist_forward.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/distance.h"

namespace orch::portable {
namespace {

/// Gives `out` its sizes, [*, P, R] for rows [*, P, M] and [*, R, M]; the other
/// dimensions are broadcast. Errors: InvalidArgument, ShapeTooLarge.
Error resize_distances(const Tensor& x1, const Tensor& x2, Tensor& out) {
  ORCH_CHECK(
      x1.dim >= 2 && x2.dim >= 2 && x1.size(x1.dim - 1) == x2.size(x2.dim - 1),
      Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  const int rank = x1.dim > x2.dim ? x1.dim : x2.dim;
  for (int i = 0; i < rank - 2; ++i) {
    const int first = i - (rank - x1.dim);
    const int second = i - (rank - x2.dim);
    const int32_t a = first < 0 ? 1 : x1.size(first);
    const int32_t b = second < 0 ? 1 : x2.size(second);
    ORCH_CHECK(a == b || a == 1 || b == 1, Error::InvalidArgument);
    sizes[i] = a == 1 ? b : a;
  }
  sizes[rank - 2] = x1.size(x1.dim - 2);
  sizes[rank - 1] = x2.size(x2.dim - 2);
  return resize_output(out, {sizes, static_cast<size_t>(rank)}, x1, x2);
}

}  // namespace

// aten::_cdist_forward.out(Tensor x1, Tensor x2, float p, int? compute_mode,
//   *, Tensor(a!) out) -> Tensor(a!)
//
// Every mode computes the distances themselves, no matrix product. The largest
// difference is one of numbers, as in PyTorch.
Error _cdist_forward_out(const Args& args) {
  const Tensor& x1 = args.tensor(0);
  const Tensor& x2 = args.tensor(1);
  const double p = args.real(2);
  Tensor& out = args.tensor(4);

  ORCH_CHECK(x1.dtype == out.dtype && x2.dtype == out.dtype,
             Error::InvalidArgument);
  ORCH_TRY(check_norm(p));
  if (args.has(3)) {
    const int64_t mode = args.integer(3);
    ORCH_CHECK(mode >= 0 && mode <= 2, Error::InvalidArgument);
  }
  ORCH_TRY(resize_distances(x1, x2, out));
  const Strides from1(x1);
  const Strides from2(x2);
  const Strides to(out);
  StridedLoop batches;
  const int last = out.dim - 1;
  for (int i = 0; i < last - 1; ++i) {
    batches.add(out.size(i), to[i], broadcast_stride(x1, from1, i, out.dim),
                broadcast_stride(x2, from2, i, out.dim));
  }
  constexpr DtypeSet kDtypes = selected::aten__cdist_forward_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Compute<T> power = static_cast<Compute<T>>(p);
    const int d1 = x1.dim - 1;
    const int d2 = x2.dim - 1;
    for (; batches.valid(); batches.next()) {
      for (int32_t n = 0; n < batches.row_size(); ++n) {
        T* row = out.mutable_data<T>() + batches.offset(0) +
                 n * batches.row_stride(0);
        Row<T> a = {
            x1.data<T>() + batches.offset(1) + n * batches.row_stride(1),
            from1[d1]};
        for (int32_t i = 0; i < out.size(last - 1); ++i) {
          Row<T> b = {
              x2.data<T>() + batches.offset(2) + n * batches.row_stride(2),
              from2[d2]};
          int32_t j = 0;
          for (; kFavourSpeed && power == 2 && out.size(last) - j >= 4;
               j += 4) {
            Compute<T> found[4];
            four_distances(a, b, from2[d2 - 1], x1.size(d1), found);
            for (int k = 0; k < 4; ++k) {
              row[(j + k) * to[last]] = static_cast<T>(found[k]);
            }
            b.items += 4 * from2[d2 - 1];
          }
          for (; j < out.size(last); ++j) {
            row[j * to[last]] =
                static_cast<T>(distance(a, b, x1.size(d1), power, false));
            b.items += from2[d2 - 1];
          }
          a.items += from1[d1 - 1];
          row += to[last - 1];
        }
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
