#include "orch_selected/op__embedding_bag_forward_only.h"

#include <string.h>

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/indexing.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

enum Mode { kSum, kMean, kMax };

struct Bags {
  const Tensor& weight;
  const Tensor& indices;
  const Tensor& offsets;
  const Tensor* scales;  // per_sample_weights, or null
  int64_t mode;
  int64_t padding;  // an index that is left out
  int32_t count;

  /// The indices of a bag: from `first` on, below `last`. Offsets are read
  /// again where memories overlap.
  int32_t first(int32_t bag) const {
    const int64_t offset = load_index(offsets, bag);
    if (offset < 0) return 0;
    return offset < indices.numel() ? static_cast<int32_t>(offset)
                                    : indices.numel();
  }
  int32_t last(int32_t bag) const {
    return bag + 1 < offsets.numel() ? first(bag + 1) : indices.numel();
  }
};

/// Errors: InvalidArgument.
Error check(const Bags& bags) {
  const int32_t items = bags.indices.numel();
  int64_t before = 0;
  for (int32_t i = 0, n = bags.offsets.numel(); i < n; ++i) {
    const int64_t offset = load_index(bags.offsets, i);
    ORCH_CHECK_DATA(
        offset >= before && offset <= items && (i > 0 || offset == 0),
        Error::InvalidArgument);
    before = offset;
  }
  for (int32_t i = 0; i < items; ++i) {
    const int64_t row = load_index(bags.indices, i);
    ORCH_CHECK_DATA(row >= 0 && row < bags.weight.size(0),
                    Error::InvalidArgument);
  }
  return Error::Ok;
}

void clear(Tensor& tensor) {
  if (tensor.numel() == 0) return;  // its memory may be null
  memset(tensor.memory, 0,
         static_cast<size_t>(tensor.numel()) * item_bytes(tensor.dtype));
}

/// Stores an integer in a tensor that may be empty.
void store(Tensor& tensor, int32_t at, int64_t value) {
  if (at >= tensor.numel()) return;
  if (tensor.dtype == ScalarType::Int) {
    tensor.mutable_data<int32_t>()[at] = static_cast<int32_t>(value);
  } else {
    tensor.mutable_data<int64_t>()[at] = value;
  }
}

/// One column of a bag. `at`: the row of its largest item, else -1; `used`:
/// indices that are not the padding.
template <typename T>
T fold_column(const Bags& bags, int32_t bag, int32_t column, int64_t& at,
              int32_t& used) {
  using C = Compute<T>;
  const Strides from(bags.weight);
  C result = 0;
  at = -1;
  used = 0;
  for (int32_t i = bags.first(bag), end = bags.last(bag); i < end; ++i) {
    const int64_t row = load_index(bags.indices, i);
    // Again: where memories overlap, what was written may be an index.
    if (row == bags.padding || row < 0 || row >= bags.weight.size(0)) continue;
    const C item = static_cast<C>(
        bags.weight
            .data<T>()[static_cast<int32_t>(row) * from[0] + column * from[1]]);
    if (bags.mode == kMax) {
      if (used == 0 || item > result) {
        result = item;
        at = row;
      }
    } else if (bags.scales != nullptr) {
      result += item * static_cast<C>(bags.scales->data<T>()[i]);
    } else {
      result += item;
    }
    ++used;
  }
  if (bags.mode == kMean && used > 1) result /= static_cast<C>(used);
  return convert<T>(result);
}

}  // namespace

// aten::_embedding_bag_forward_only.out(Tensor weight, Tensor indices,
//   Tensor offsets, bool scale_grad_by_freq=False, int mode=0,
//   bool sparse=False, Tensor? per_sample_weights=None,
//   bool include_last_offset=False, int padding_idx=-1, *, Tensor(a!) out0,
//   Tensor(b!) out1, Tensor(c!) out2, Tensor(d!) out3)
//   -> (Tensor(a!), Tensor(b!), Tensor(c!), Tensor(d!))
//
// out1 is the bag of each index; out2 the indices of each bag, which a sum does
// not count; out3 the rows of the largest items, or out2 again. PyTorch's own
// sizes of these three differ by what they are computed for, so those of the
// program stay.
Error _embedding_bag_forward_only_out(const Args& args) {
  const Tensor& weight = args.tensor(0);
  const Tensor& indices = args.tensor(1);
  const Tensor& offsets = args.tensor(2);
  const Tensor* scales = args.has(6) ? &args.tensor(6) : nullptr;
  Tensor& out = args.tensor(9);
  Tensor& bag_of = args.tensor(10);
  Tensor& bag_size = args.tensor(11);
  Tensor& largest = args.tensor(12);

  ORCH_CHECK(weight.dtype == out.dtype && weight.dim == 2 && indices.dim == 1 &&
                 offsets.dim == 1,
             Error::InvalidArgument);
  ORCH_CHECK(kIndices.has(indices.dtype) && kIndices.has(offsets.dtype),
             Error::InvalidArgument);
  Tensor* const more_outs[] = {&bag_of, &bag_size, &largest};
  ORCH_CHECK(kIndices.has(bag_of.dtype) && kIndices.has(bag_size.dtype) &&
                 kIndices.has(largest.dtype),
             Error::InvalidArgument);
  const int64_t mode = args.integer(4);
  ORCH_CHECK(mode >= kSum && mode <= kMax, Error::InvalidArgument);
  ORCH_CHECK(scales == nullptr ||
                 (mode == kSum && scales->dtype == weight.dtype &&
                  scales->dim == 1 && scales->numel() == indices.numel()),
             Error::InvalidArgument);
  const int32_t count = offsets.numel() - (args.boolean(7) ? 1 : 0);
  ORCH_CHECK(count >= 0, Error::InvalidArgument);
  const int64_t padding = args.integer(8);
  const Bags bags = {weight, indices, offsets, scales, mode, padding, count};
  ORCH_TRY_DATA(check(bags));
  const int32_t sizes[] = {count, weight.size(1)};
  ORCH_TRY(resize_output(out, sizes, weight));

  constexpr DtypeSet kDtypes = selected::aten__embedding_bag_forward_only_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Strides to(out);
    const Strides rows(largest);
    for (Tensor* more : more_outs) clear(*more);
    for (int32_t bag = 0; bag < count; ++bag) {
      int32_t used = 0;
      for (int32_t column = 0; column < sizes[1]; ++column) {
        int64_t at = -1;
        out.mutable_data<T>()[bag * to[0] + column * to[1]] =
            fold_column<T>(bags, bag, column, at, used);
        if (mode == kMax && largest.dim == 2) {
          store(largest, bag * rows[0] + column * rows[1], at);
        }
      }
      const int32_t counted = mode == kSum ? 0 : used;
      store(bag_size, bag, counted);
      if (mode != kMax) store(largest, bag, counted);
      for (int32_t i = bags.first(bag); i < bags.last(bag); ++i) {
        store(bag_of, i, bag);
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
