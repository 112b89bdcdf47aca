#include "orch_selected/op__fft_c2r.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/fft.h"

namespace orch::portable {
namespace {

/// The item at an index of the signal that H = Re - Im of the spectrum is, the
/// other half of which follows from the one that `self` holds. A spectrum that
/// is not that of real numbers counts as its symmetric part, as in PyTorch.
template <typename T>
T hartley_item(const FftPlan& plan, const Complex<T>* self,
               const Strides& strides, const int32_t* index) {
  int32_t offset = 0;    // at the index, or where the last one is mirrored
  int32_t opposite = 0;  // with all others mirrored
  bool mirrored = false;
  bool middle = false;
  for (int d = 0; d < plan.dims; ++d) {
    const int32_t at = index[d];
    int32_t other = at;
    for (int i = 0; i < plan.transformed; ++i) {
      if (plan.along[i] == d) other = at == 0 ? 0 : plan.size[d] - at;
    }
    if (plan.last(d)) {
      mirrored = at > other;
      middle = at == other;
      offset += (mirrored ? other : at) * strides[d];
      opposite += (mirrored ? other : at) * strides[d];
    } else {
      offset += at * strides[d];
      opposite += other * strides[d];
    }
  }
  const Complex<T> there = self[opposite];
  if (mirrored) return there.real + there.imag;
  const Complex<T> here = self[offset];
  if (!middle) return here.real - here.imag;
  if (offset == opposite) return here.real;
  return (here.real + there.real - (here.imag - there.imag)) / 2;
}

/// From the spectrum of a line to its Hartley transform.
template <typename T>
void to_hartley(T* items, FftLines lines, int32_t size, int32_t stride) {
  int32_t offset;
  while (lines.next(&offset, 1) != 0) {
    for (int32_t k = 1; 2 * k < size; ++k) {
      T& low = items[offset + k * stride];
      T& high = items[offset + (size - k) * stride];
      const T re = low;
      const T im = high;
      low = re - im;
      high = re + im;
    }
  }
}

/// Makes transforms along each dimension one along all: cas(a + b) is half of
/// cas a cas b + cas(-a) cas b + cas a cas(-b) - cas(-a) cas(-b). `a` stands
/// for all dimensions of the plan before `i`, which is that of `b`.
template <typename T>
void join_dims(const FftPlan& plan, int i, T* items, const int32_t* strides) {
  const int along = plan.along[i];
  int32_t at[kMaxDim] = {};
  for (;;) {
    int32_t offset = 0;    // of a, b
    int32_t opposite = 0;  // of -a, b
    for (int d = 0; d < plan.dims; ++d) {
      offset += at[d] * strides[d];
      int32_t other = at[d];
      for (int j = 0; j < i; ++j) {
        if (plan.along[j] == d && at[d] != 0) other = plan.size[d] - at[d];
      }
      opposite += other * strides[d];
    }
    // Each four once.
    const int32_t size = plan.size[along];
    if (offset < opposite && at[along] != 0 && 2 * at[along] < size) {
      const int32_t turned = (size - 2 * at[along]) * strides[along];
      T& a = items[offset];
      T& b = items[opposite];
      T& c = items[offset + turned];
      T& d = items[opposite + turned];
      const T sum = (a + b + c + d) / 2;
      const T old_a = a;
      const T old_b = b;
      a = sum - d;
      b = sum - c;
      c = sum - old_b;
      d = sum - old_a;
    }
    int d = plan.dims - 1;
    for (; d >= 0; --d) {
      if (++at[d] < plan.size[d]) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace

// aten::_fft_c2r.out(Tensor self, int[] dim, int normalization,
//   SymInt last_dim_size, *, Tensor(a!) out) -> Tensor(a!)
Error _fft_c2r_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList dims = args.int_list(1);
  Tensor& out = args.tensor(4);

  int32_t sizes[kMaxDim];
  for (int d = 0; d < self.dim; ++d) sizes[d] = self.size(d);
  int last = 0;
  int32_t size = 0;
  ORCH_CHECK(dims.size() > 0, Error::InvalidArgument);
  ORCH_TRY(read_dim(dims[dims.size() - 1], self.dim, last));
  ORCH_TRY(read_int(args.integer(3), 1, size));
  ORCH_CHECK(self.dim > 0 && sizes[last] > size / 2, Error::InvalidArgument);
  sizes[last] = size;
  FftPlan plan;
  ORCH_TRY(read_fft(dims, args.integer(2), {sizes, self.dim}, plan));
  constexpr DtypeSet kDtypes = selected::aten__fft_c2r_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    ORCH_CHECK(self.dtype == DtypeOf<Complex<T>>::value,
               Error::InvalidArgument);
    ORCH_TRY(resize_output(out, {sizes, self.dim}, self));
    if (out.numel() == 0) return Error::Ok;
    const Strides from(self);
    const Strides strides(out);
    T* const items = out.mutable_data<T>();
    const Complex<T>* const spectrum = self.data<Complex<T>>();
    const FftSlots slots{plan.size[last], strides[last], plan.size[last]};
    fft_load(plan, items, strides.at, slots, [&](const int32_t* index) {
      return hartley_item(plan, spectrum, from, index);
    });
    for (int i = 0; i < plan.transformed; ++i) {
      const int along = plan.along[i];
      const FftSlots line{plan.size[along], strides[along], plan.size[along]};
      const FftLines lines(plan.size, strides.at, plan.dims, along);
      fft_stages(items, line, lines, plan.length[i]);
      to_hartley(items, lines, plan.size[along], strides[along]);
      if (i > 0) join_dims(plan, i, items, strides.at);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
