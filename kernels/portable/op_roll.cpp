#include "orch/kernel.h"
#include "util/bordered.h"
#include "util/check.h"
#include "util/flattened.h"

namespace orch::portable {
namespace {

/// A shift, which may go round several times, as one of less than `size`, at
/// least 1. Bit by bit: division of 64 bits is a library function on small
/// cores.
int32_t wrapped(int64_t shift, int32_t size) {
  const uint64_t bits = shift < 0 ? ~static_cast<uint64_t>(shift) + 1
                                  : static_cast<uint64_t>(shift);
  const uint32_t whole = static_cast<uint32_t>(size);
  uint32_t rest = 0;
  for (int i = 64; i-- > 0;) {
    rest = 2 * rest + static_cast<uint32_t>((bits >> i) & 1);
    if (rest >= whole) rest -= whole;
  }
  return static_cast<int32_t>(shift < 0 && rest != 0 ? whole - rest : rest);
}

}  // namespace

// aten::roll.out(Tensor self, SymInt[1] shifts, int[1] dims=[], *,
//   Tensor(a!) out) -> Tensor(a!)
//
// Without dimensions, all items are one row.
Error roll_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList shifts = args.int_list(1);
  const IntList dims = args.int_list(2);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(self.dtype == out.dtype && shifts.size() > 0,
             Error::InvalidArgument);
  const bool flat = dims.size() == 0 && shifts.size() == 1;
  ORCH_CHECK(flat || dims.size() == shifts.size(), Error::InvalidArgument);
  const bool empty = self.numel() == 0;
  int32_t before[kMaxDim] = {};
  // Like PyTorch, look at no dimension of a tensor without items.
  for (int i = 0; i < dims.size() && !empty; ++i) {
    int dim = 0;
    ORCH_CHECK(self.dim > 0, Error::InvalidArgument);
    ORCH_TRY(read_dim(dims[i], self.dim, dim));
    const int32_t size = self.size(dim);
    const int32_t shift = wrapped(shifts[i], size);
    const int32_t left = size - before[dim];
    before[dim] = shift < left ? before[dim] + shift : shift - left;
  }
  ORCH_TRY(set_sizes(out, self.sizes()));
  if (empty) return Error::Ok;
  if (flat) {
    move_flattened(out, self, wrapped(shifts[0], self.numel()));
  } else {
    move_bordered(out, self, before, Border::Wrap);
  }
  return Error::Ok;
}

}  // namespace orch::portable
