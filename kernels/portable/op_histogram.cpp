#include "orch_selected/op_histogram.h"

#include "orch/kernel.h"
#include "util/bins.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/strided_loop.h"

namespace orch::portable {
namespace {

/// What both overloads take.
struct Histogram {
  const Tensor& self;
  const Tensor* weight;  // null: each item counts 1
  bool is_density;
  Tensor& hist;
  Tensor& edges;
};

/// Checks the dtypes and sizes; gives the outputs theirs. `given`: another
/// input. Errors: InvalidArgument, ShapeTooLarge.
Error prepare(const Histogram& call, const Tensor& given, int32_t bins) {
  const Tensor& self = call.self;
  const Tensor& weight = call.weight != nullptr ? *call.weight : self;
  ORCH_CHECK(self.dtype == given.dtype && self.dtype == weight.dtype &&
                 self.dtype == call.hist.dtype &&
                 self.dtype == call.edges.dtype && same_sizes(self, weight),
             Error::InvalidArgument);
  const int32_t sizes[] = {bins, bins + 1};
  ORCH_TRY(resize_output(call.hist, {sizes, 1}, self, weight, given));
  return resize_output(call.edges, {sizes + 1, 1}, self, weight, given,
                       call.hist);
}

/// from + times * step. Halves are rounded twice, others once: as the fused
/// operation of processors does, which PyTorch's linspace is compiled to.
template <typename T>
T stepped(Compute<T> from, Compute<T> step, int32_t times) {
  if constexpr (kIsHalf<T>) {
    return static_cast<T>(
        from + rounded<T>(step * rounded<T>(from_int<Compute<T>>(times))));
  } else if constexpr (kIsSame<T, float>) {
    return static_cast<float>(double{from} + double{step} * times);
  } else {
    // Both parts of the step have exact products with up to 26 bits.
    uint64_t bits;
    memcpy(&bits, &step, sizeof bits);
    bits &= ~uint64_t{0x7FFFFFF};
    double high;
    memcpy(&high, &bits, sizeof high);
    const double most = high * times;
    const double sum = from + most;
    if (!(sum - sum == 0)) return sum;
    const double added = sum - from;
    const double lost = (from - (sum - added)) + (most - added);
    return sum + (lost + (step - high) * times);
  }
}

/// hist = how many items, or which weights, are between one edge and the next,
/// which is not included but for the last. `is_even`: the bin is looked for
/// beside the one that division finds, as in PyTorch. Edges may be in no order.
template <typename T>
void fill(const Histogram& call, int32_t bins, bool is_even) {
  const Tensor& weight = call.weight != nullptr ? *call.weight : call.self;
  const T* const edges = call.edges.data<T>();
  T* const hist = call.hist.mutable_data<T>();
  for (int32_t i = 0; i < bins; ++i) hist[i] = static_cast<T>(0.0F);
  const EvenBins<T> even = {number_of(edges[0]), number_of(edges[bins]), bins};
  const Strides from(call.self);
  const Strides also(weight);
  StridedLoop loop;
  for (int d = 0; d < call.self.dim; ++d) {
    loop.add(call.self.size(d), from[d], also[d]);
  }
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      const auto item = number_of(
          call.self.data<T>()[loop.offset(0) + i * loop.row_stride(0)]);
      if (!even.has(item)) continue;
      const int32_t place = is_even ? even.find(item) : 0;
      int32_t low = place > 0 ? place - 1 : 0;
      int32_t high = is_even && place < bins ? place + 2 : bins + 1;
      while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (item < number_of(edges[middle])) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      // 0 if the outputs overlap.
      const int32_t bin = low > bins ? bins - 1 : low > 0 ? low - 1 : 0;
      const T count =
          call.weight == nullptr
              ? static_cast<T>(1.0F)
              : weight.data<T>()[loop.offset(1) + i * loop.row_stride(1)];
      hist[bin] = static_cast<T>(number_of(hist[bin]) + number_of(count));
    }
  }
  if (!call.is_density) return;
  Compute<T> sum = 0;
  for (int32_t i = 0; i < bins; ++i) sum += number_of(hist[i]);
  sum = rounded<T>(sum);
  for (int32_t i = 0; i < bins; ++i) {
    const auto width =
        rounded<T>(number_of(edges[i + 1]) - number_of(edges[i]));
    hist[i] = static_cast<T>(rounded<T>(number_of(hist[i]) / sum) / width);
  }
}

}  // namespace

// aten::histogram.bin_ct_out(Tensor self, int bins=100, *,
//   float[]? range=None, Tensor? weight=None, bool density=False,
//   Tensor(a!) hist, Tensor(b!) bin_edges)
//   -> (Tensor(a!) hist, Tensor(b!) bin_edges)
//
// Without a range it is that of the items, or from 0 to 1 if there are none;
// one of no width is made wider by 0.5 on both sides.
Error histogram_bin_ct_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Histogram call = {self, args.optional_tensor(3), args.boolean(4),
                          args.tensor(5), args.tensor(6)};
  int32_t bins = 0;
  ORCH_TRY(read_int(args.integer(1), 1, bins));
  double ends[] = {0, 1};
  if (args.has(2)) {
    const Span<const double> range = args.double_list(2);
    ORCH_CHECK(range.size() == 2, Error::InvalidArgument);
    ends[0] = range[0];
    ends[1] = range[1];
    ORCH_CHECK(
        ends[0] - ends[0] == 0 && ends[1] - ends[1] == 0 && ends[0] <= ends[1],
        Error::InvalidArgument);
  }
  constexpr DtypeSet kDtypes = selected::aten_histogram_bin_ct_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) -> Error {
    using T = typename decltype(type)::type;
    if (!args.has(2) && self.numel() != 0) {
      T least;
      T most;
      ORCH_TRY_DATA(find_range(self.data<T>(), self.numel(), least, most));
      ends[0] = convert<double>(least);
      ends[1] = convert<double>(most);
    }
    if (ends[0] == ends[1]) {
      ends[0] -= 0.5;
      ends[1] += 0.5;
    }
    ORCH_TRY(prepare(call, self, bins));
    const auto low = number_of(convert<T>(ends[0]));
    const auto high = number_of(convert<T>(ends[1]));
    const auto step = rounded<T>(rounded<T>(high - low) /
                                 rounded<T>(from_int<Compute<T>>(bins)));
    T* const edges = call.edges.mutable_data<T>();
    for (int32_t i = 0; i <= bins; ++i) {
      edges[i] = i <= (bins - 1) / 2 ? stepped<T>(low, step, i)
                                     : stepped<T>(high, -step, bins - i);
    }
    fill<T>(call, bins, true);
    return Error::Ok;
  });
}

// aten::histogram.bins_tensor_out(Tensor self, Tensor bins, *,
//   Tensor? weight=None, bool density=False, Tensor(a!) hist,
//   Tensor(b!) bin_edges) -> (Tensor(a!) hist, Tensor(b!) bin_edges)
Error histogram_bins_tensor_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& bins = args.tensor(1);
  const Histogram call = {self, args.optional_tensor(2), args.boolean(3),
                          args.tensor(4), args.tensor(5)};
  ORCH_CHECK(bins.dim == 1 && bins.size(0) > 1, Error::InvalidArgument);
  const int32_t count = bins.size(0) - 1;
  constexpr DtypeSet kDtypes = selected::aten_histogram_bins_tensor_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) -> Error {
    using T = typename decltype(type)::type;
    ORCH_TRY(prepare(call, bins, count));
    memmove(call.edges.memory, bins.memory, bins.nbytes());
    fill<T>(call, count, false);
    return Error::Ok;
  });
}

}  // namespace orch::portable
