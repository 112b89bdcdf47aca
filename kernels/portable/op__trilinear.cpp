#include "orch_selected/op__trilinear.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

constexpr int kInputs = 3;

/// The space that three tensors span: strides are 0 along dimensions that a
/// tensor does not have, or has with size 1.
struct Space {
  int rank = 0;
  int32_t size[kMaxDim];
  int32_t stride[kInputs][kMaxDim] = {};
  unsigned summed = 0;  // a bit for each dimension
};

/// Adds tensor number `which`; `expanded`: a bit for each dimension of the
/// space that it does not have. Errors: InvalidArgument.
Error add_input(Space& space, int which, const Tensor& input,
                unsigned expanded) {
  const Strides strides(input);
  int own = 0;
  for (int d = 0; d < space.rank; ++d) {
    if (((expanded >> d) & 1U) != 0) continue;
    const int32_t size = input.size(own);
    if (size != 1) {
      ORCH_CHECK(space.size[d] == 1 || space.size[d] == size,
                 Error::InvalidArgument);
      space.size[d] = size;
      space.stride[which][d] = strides[own];
    }
    ++own;
  }
  return Error::Ok;
}

/// The place of an item in the three tensors.
struct Place {
  int32_t offset[kInputs] = {};
};

/// Goes to the next place along the dimensions that `dims` has a bit for;
/// whether there is one. Afterwards all are at their beginning again.
bool next(const Space& space, unsigned dims, int32_t* index, Place& place) {
  for (int d = space.rank; d-- > 0;) {
    if (((dims >> d) & 1U) == 0) continue;
    ++index[d];
    for (int i = 0; i < kInputs; ++i) place.offset[i] += space.stride[i][d];
    if (index[d] < space.size[d]) return true;
    for (int i = 0; i < kInputs; ++i) {
      place.offset[i] -= index[d] * space.stride[i][d];
    }
    index[d] = 0;
  }
  return false;
}

template <typename T>
void sum_products(const Space& space, const Tensor* const* inputs,
                  Tensor& out) {
  using C = Compute<T>;
  const Strides to(out);
  int32_t index[kMaxDim] = {};
  Place place;
  do {
    C sum = 0;
    do {
      const int32_t* at = place.offset;
      sum += static_cast<C>(inputs[0]->data<T>()[at[0]]) *
             static_cast<C>(inputs[1]->data<T>()[at[1]]) *
             static_cast<C>(inputs[2]->data<T>()[at[2]]);
    } while (next(space, space.summed, index, place));
    int32_t target = 0;
    for (int d = 0, own = 0; d < space.rank; ++d) {
      if (((space.summed >> d) & 1U) == 0) target += index[d] * to[own++];
    }
    out.mutable_data<T>()[target] = convert<T>(sum);
  } while (next(space, ~space.summed, index, place));
}

/// 0 for every item: without an item to sum.
template <typename T>
void clear(Tensor& out) {
  for (int32_t i = 0; i < out.numel(); ++i) out.mutable_data<T>()[i] = T(0);
}

}  // namespace

// aten::_trilinear.out(Tensor i1, Tensor i2, Tensor i3, int[] expand1,
//   int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// The product of the three, each with dimensions of size 1 added, summed over
// some dimensions. In which order it is computed is all that unroll_dim says.
Error _trilinear_out(const Args& args) {
  const Tensor* const inputs[] = {&args.tensor(0), &args.tensor(1),
                                  &args.tensor(2)};
  Tensor& out = args.tensor(8);

  Space space;
  const int rank = inputs[0]->dim + static_cast<int>(args.int_list(3).size());
  ORCH_CHECK(rank <= kMaxDim, Error::InvalidArgument);
  space.rank = rank;
  for (int32_t& size : space.size) size = 1;
  ORCH_TRY(read_dims(args.int_list(6), rank, space.summed));
  for (int i = 0; i < kInputs; ++i) {
    const IntList added = args.int_list(3 + i);
    const int own = inputs[i]->dim;
    ORCH_CHECK(inputs[i]->dtype == out.dtype &&
                   own + static_cast<int>(added.size()) == rank,
               Error::InvalidArgument);
    unsigned expanded = 0;
    ORCH_TRY(read_dims(added, rank, expanded));
    ORCH_TRY(add_input(space, i, *inputs[i], expanded));
  }
  int32_t sizes[kMaxDim];
  size_t kept = 0;
  bool sums = true;
  for (int d = 0; d < rank; ++d) {
    const bool summed = ((space.summed >> d) & 1U) != 0;
    if (!summed) sizes[kept++] = space.size[d];
    if (summed && space.size[d] == 0) sums = false;
  }
  ORCH_TRY(
      resize_output(out, {sizes, kept}, *inputs[0], *inputs[1], *inputs[2]));
  constexpr DtypeSet kDtypes = selected::aten__trilinear_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (out.numel() == 0) return Error::Ok;
    if (sums) {
      sum_products<T>(space, inputs, out);
    } else {
      clear<T>(out);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
