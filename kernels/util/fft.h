// Discrete Fourier transforms of any length over any dimensions, in the memory
// of the output: no scratch.
//
// All of them are made of one: that of a line of real numbers, in place, which
// leaves the spectrum in halves. Slot k, up to half of the length, holds the
// real part of frequency k, and slot n - k its imaginary part. Stages combine
// the spectra of interleaved parts of a line, by radices of up to kMaxRadix;
// what remains of the length is summed directly when the input is read.
//
// - Real to complex: the slots are the parts of the output, in an order that
//   leaves every part where it belongs; then the other dimensions as below.
// - Complex to complex: real and imaginary parts are two lines, whose spectra
//   are then combined.
// - Complex to real: with H = Re - Im, the Hartley transform of H is the
//   result. It is the real parts less the imaginary parts of H's spectrum, and
//   dimension by dimension that of several, but for signs of indices.
//
// Source: Sorensen, Jones, Heideman, Burrus, "Real-valued fast Fourier
// transform algorithms", 1987; Bracewell, "The Hartley transform", 1986.
#pragma once

#include <stdint.h>

#include "orch/math.h"
#include "orch/tensor.h"
#include "util/check.h"
#include "util/complex.h"

namespace orch {

/// Largest radix of a stage: what a butterfly keeps on the stack.
inline constexpr int32_t kMaxRadix = 13;
/// Lines that share a stage's roots of unity.
inline constexpr int kFftLines = 16;

/// How a length is taken apart: direct sums over `direct` items, then stages
/// from the first to the last.
struct FftLength {
  int32_t size = 1;
  int32_t direct = 1;
  int32_t stages = 0;
  uint8_t radix[20];  // 3^20 is above 2^31

  /// Where slot `slot` gets its items from: the first of them, and the step to
  /// the next. `slot` becomes that of the direct sum.
  int32_t source(int32_t& slot, int32_t& step) const {
    int32_t first = 0;
    int32_t part = size;
    step = 1;
    for (int32_t i = stages; i-- > 0;) {
      part /= radix[i];
      const int32_t digit = slot / part;
      slot -= digit * part;
      first += digit * step;
      step *= radix[i];
    }
    return first;
  }
};

__attribute__((noinline)) inline FftLength fft_length(int32_t size) {
  FftLength made;
  made.size = size;
  int32_t rest = size;
  for (int32_t prime = 3; prime <= kMaxRadix; prime += 2) {
    while (rest % prime == 0) {
      rest /= prime;
      made.radix[made.stages++] = static_cast<uint8_t>(prime);
    }
  }
  int32_t twos = 0;
  for (; rest % 2 == 0; rest /= 2) ++twos;
  if (twos % 2 != 0) made.radix[made.stages++] = 2;
  for (; twos >= 2; twos -= 2) made.radix[made.stages++] = 4;
  made.direct = rest;
  return made;
}

/// exp(-2 pi i `index` / `count`). The angle is at most an eighth of a turn, so
/// that both parts are as exact as their functions.
template <typename T>
__attribute__((noinline)) Complex<T> root_of_unity(int32_t index,
                                                   int32_t count) {
  uint32_t turn = static_cast<uint32_t>(count);
  // In eighths: lengths are below 2^29, as the bytes of a tensor are.
  uint32_t at = static_cast<uint32_t>(index % count) * 8;
  const bool below = at > 4 * turn;
  if (below) at = 8 * turn - at;
  const bool left = at > 2 * turn;
  if (left) at = 4 * turn - at;
  const bool steep = at > turn;
  if (steep) at = 2 * turn - at;
  constexpr T kEighth = static_cast<T>(0.785398163397448309615660845819875721L);
  const T angle = kEighth * static_cast<T>(static_cast<int32_t>(at)) /
                  static_cast<T>(static_cast<int32_t>(turn));
  T cosine = math::cos(angle);
  T sine = math::sin(angle);
  if (steep) {
    const T other = cosine;
    cosine = sine;
    sine = other;
  }
  return {left ? -cosine : cosine, below ? sine : -sine};
}

/// Where the slots of a line lie: those above `split` are the odd items of the
/// others, from the end.
struct FftSlots {
  int32_t size;
  int32_t step;
  int32_t split;

  int32_t operator[](int32_t slot) const {
    return slot <= split ? slot * step : (size - slot) * step + 1;
  }
};

/// The transform of `count` items in place, by `roots` of 1.
template <typename T>
void transform_few(Complex<T>* items, int32_t count, const Complex<T>* roots) {
  if (count == 2) {
    const Complex<T> first = items[0];
    items[0] = first + items[1];
    items[1] = first - items[1];
    return;
  }
  if (count == 4) {
    const Complex<T> even = items[0] + items[2];
    const Complex<T> even_less = items[0] - items[2];
    const Complex<T> odd = items[1] + items[3];
    const Complex<T> odd_less = items[1] - items[3];
    items[0] = even + odd;
    items[1] = {even_less.real + odd_less.imag, even_less.imag - odd_less.real};
    items[2] = even - odd;
    items[3] = {even_less.real - odd_less.imag, even_less.imag + odd_less.real};
    return;
  }
  // Pairs r and count - r have sums and differences that serve two results.
  const int32_t half = count / 2;
  const Complex<T> first = items[0];
  Complex<T> total = first;
  for (int32_t r = 1; r <= half; ++r) {
    const Complex<T> a = items[r];
    const Complex<T> b = items[count - r];
    items[r] = a + b;
    items[count - r] = a - b;
    total += items[r];
  }
  Complex<T> found[kMaxRadix];
  for (int32_t q = 1; q <= half; ++q) {
    Complex<T> even = first;
    Complex<T> odd = {0, 0};
    int32_t turn = 0;
    for (int32_t r = 1; r <= half; ++r) {
      turn += q;
      if (turn >= count) turn -= count;
      const Complex<T> sum = items[r];
      const Complex<T> less = items[count - r];
      const Complex<T> root = roots[turn];
      even.real += sum.real * root.real;
      even.imag += sum.imag * root.real;
      odd.real += less.real * root.imag;
      odd.imag += less.imag * root.imag;
    }
    found[q] = {even.real - odd.imag, even.imag + odd.real};
    found[count - q] = {even.real + odd.imag, even.imag - odd.real};
  }
  items[0] = total;
  for (int32_t q = 1; q < count; ++q) items[q] = found[q];
}

/// Combines the spectra of `radix` interleaved parts, each of `part` items and
/// beside each other, to one; for all that a line has of them. `lines` are the
/// offsets of several lines.
template <typename T>
__attribute__((noinline)) void fft_stage(T* items, const FftSlots& slots,
                                         const int32_t* lines, int32_t count,
                                         int32_t part, int32_t radix) {
  const int32_t whole = part * radix;
  Complex<T> roots[kMaxRadix];
  if (radix != 2 && radix != 4) {
    for (int32_t r = 0; r < radix; ++r) {
      roots[r] = root_of_unity<T>(r, radix);
    }
  }
  for (int32_t k = 0; 2 * k <= part; ++k) {
    const bool real = k == 0 || 2 * k == part;
    Complex<T> twist[kMaxRadix];
    twist[0] = {1, 0};
    if (k != 0) {
      twist[1] = root_of_unity<T>(k, whole);
      for (int32_t r = 2; r < radix; ++r) {
        // By the halves, so that errors grow with the logarithm.
        twist[r] = twist[r / 2] * twist[r - r / 2];
      }
    }
    for (int32_t line = 0; line < count; ++line) {
      T* const at = items + lines[line];
      for (int32_t begin = 0; begin < slots.size; begin += whole) {
        Complex<T> few[kMaxRadix];
        for (int32_t r = 0; r < radix; ++r) {
          const int32_t first = begin + r * part;
          few[r].real = at[slots[first + k]];
          few[r].imag = real ? 0 : at[slots[first + part - k]];
          if (k != 0 && r != 0) few[r] = few[r] * twist[r];
        }
        transform_few(few, radix, roots);
        for (int32_t q = 0; q < radix; ++q) {
          const int32_t index = q * part + k;
          if (2 * index <= whole) {
            at[slots[begin + index]] = few[q].real;
            if (index != 0 && 2 * index != whole) {
              at[slots[begin + whole - index]] = few[q].imag;
            }
          } else if (!real) {
            at[slots[begin + whole - index]] = few[q].real;
            at[slots[begin + index]] = -few[q].imag;
          }
        }
      }
    }
  }
}

/// The lines of an array along a dimension.
class FftLines {
 public:
  /// Sizes and strides of the array; it has items.
  FftLines(const int32_t* sizes, const int32_t* strides, int dims, int along)
      : sizes_(sizes), strides_(strides), dims_(dims), along_(along) {}

  /// Offsets of the next lines, at most `most`, and their number; 0 at the end.
  int32_t next(int32_t* offsets, int32_t most) {
    int32_t found = 0;
    while (!done_ && found < most) {
      offsets[found++] = offset_;
      int d = dims_ - 1;
      for (; d >= 0; --d) {
        if (d == along_) continue;
        offset_ += strides_[d];
        if (++at_[d] < sizes_[d]) break;
        offset_ -= sizes_[d] * strides_[d];
        at_[d] = 0;
      }
      done_ = d < 0;
    }
    return found;
  }

 private:
  const int32_t* sizes_;
  const int32_t* strides_;
  int dims_;
  int along_;
  int32_t offset_ = 0;
  bool done_ = false;
  int32_t at_[kMaxDim + 1] = {};
};

/// All stages of the lines.
template <typename T>
__attribute__((noinline)) void fft_stages(T* items, const FftSlots& slots,
                                          FftLines lines,
                                          const FftLength& length) {
  int32_t offsets[kFftLines];
  for (int32_t count; (count = lines.next(offsets, kFftLines)) != 0;) {
    int32_t part = length.direct;
    for (int32_t i = 0; i < length.stages; ++i) {
      fft_stage(items, slots, offsets, count, part, length.radix[i]);
      part *= length.radix[i];
    }
  }
}

/// What is transformed, and how.
struct FftPlan {
  int dims = 0;               // of the tensors
  int transformed = 0;        // of them
  int along[kMaxDim];         // these
  FftLength length[kMaxDim];  // by place in `along`
  int32_t size[kMaxDim];      // of the signal, by dimension
  double scale = 1;

  bool last(int dim) const { return dim == along[transformed - 1]; }
};

/// Reads dimensions and normalization of a transform of `sizes`. Errors:
/// InvalidArgument.
__attribute__((noinline)) inline Error read_fft(const IntList& dims,
                                                int64_t normalization,
                                                Span<const int32_t> sizes,
                                                FftPlan& plan) {
  ORCH_CHECK(dims.size() > 0 && dims.size() <= static_cast<int>(sizes.size()) &&
                 normalization >= 0 && normalization <= 2,
             Error::InvalidArgument);
  plan.dims = static_cast<int>(sizes.size());
  for (int d = 0; d < plan.dims; ++d) {
    plan.size[d] = sizes[static_cast<size_t>(d)];
  }
  unsigned seen = 0;
  double items = 1;
  for (int i = 0; i < dims.size(); ++i) {
    int dim = 0;
    ORCH_TRY(read_dim(dims[i], plan.dims, dim));
    ORCH_CHECK(((seen >> dim) & 1U) == 0 && plan.size[dim] > 0,
               Error::InvalidArgument);
    seen |= 1U << dim;
    plan.along[i] = dim;
    plan.length[i] = fft_length(plan.size[dim]);
    items *= plan.size[dim];
  }
  plan.transformed = dims.size();
  if (normalization == 1) plan.scale = 1 / math::sqrt(items);
  if (normalization == 2) plan.scale = 1 / items;
  return Error::Ok;
}

/// Fills the slots with the input in the order that the stages want, summed
/// directly where they do not reach. load(index by dimension) gives an item of
/// the signal; `slots` are those of the last dimension transformed, `strides`
/// those of the others. There are items.
template <typename T, typename Load>
__attribute__((noinline)) void fft_load(const FftPlan& plan, T* out,
                                        const int32_t* strides,
                                        const FftSlots& slots, Load load) {
  int32_t at[kMaxDim] = {};    // the slot
  int32_t from[kMaxDim] = {};  // the index of its first item
  int32_t step[kMaxDim];       // and from there to the others
  int32_t frequency[kMaxDim];
  int32_t direct = 1;
  const auto place = [&](int i) {
    const int d = plan.along[i];
    frequency[i] = at[d];
    from[d] = plan.length[i].source(frequency[i], step[i]);
  };
  for (int i = 0; i < plan.transformed; ++i) {
    direct *= plan.length[i].direct;
    place(i);
  }
  const T scale = static_cast<T>(plan.scale);
  for (;;) {
    T value;
    if (direct == 1) {
      value = load(from);
    } else {
      value = 0;
      int32_t term[kMaxDim] = {};
      for (int32_t left = direct; left > 0; --left) {
        T factor = 1;
        int32_t index[kMaxDim];
        for (int d = 0; d < plan.dims; ++d) index[d] = from[d];
        for (int i = 0; i < plan.transformed; ++i) {
          index[plan.along[i]] += term[i] * step[i];
          const int32_t count = plan.length[i].direct;
          const int32_t turn = static_cast<int32_t>(
              static_cast<int64_t>(term[i]) * frequency[i] % count);
          const Complex<T> root = root_of_unity<T>(turn, count);
          factor *= 2 * frequency[i] > count ? -root.imag : root.real;
        }
        value += factor * load(index);
        for (int i = plan.transformed; i-- > 0;) {
          if (++term[i] < plan.length[i].direct) break;
          term[i] = 0;
        }
      }
    }
    int32_t offset = 0;
    for (int d = 0; d < plan.dims; ++d) {
      offset += plan.last(d) ? slots[at[d]] : at[d] * strides[d];
    }
    out[offset] = value * scale;
    int d = plan.dims - 1;
    for (; d >= 0; --d) {
      if (++at[d] == plan.size[d]) at[d] = 0;
      int i = 0;
      while (i < plan.transformed && plan.along[i] != d) ++i;
      if (i < plan.transformed) {
        place(i);
      } else {
        from[d] = at[d];
      }
      if (at[d] != 0) break;
    }
    if (d < 0) return;
  }
}

/// From the spectra of real and imaginary parts, beside each other, to that of
/// the complex numbers; the conjugate of the former where not `forward`.
template <typename T>
__attribute__((noinline)) void fft_combine(T* items, FftLines lines,
                                           int32_t size, int32_t stride,
                                           bool forward) {
  int32_t offset;
  while (lines.next(&offset, 1) != 0) {
    for (int32_t k = 1; 2 * k < size; ++k) {
      T* const low = items + offset + k * stride;
      T* const high = items + offset + (size - k) * stride;
      const T re = low[0];
      const T im = low[1];
      const T re_sine = forward ? high[0] : -high[0];
      const T im_sine = forward ? high[1] : -high[1];
      low[0] = re - im_sine;
      low[1] = im + re_sine;
      high[0] = re + im_sine;
      high[1] = im - re_sine;
    }
  }
}

/// Transforms complex numbers along dimension `i` of the plan in place, after
/// fft_load. Sizes and strides are those of the output, the latter in parts of
/// numbers.
template <typename T>
void fft_complex(const FftPlan& plan, int i, T* out, const int32_t* sizes,
                 const int32_t* strides, bool forward) {
  // Real and imaginary parts are one more dimension.
  int32_t all_sizes[kMaxDim + 1];
  int32_t all_strides[kMaxDim + 1];
  for (int d = 0; d < plan.dims; ++d) {
    all_sizes[d] = sizes[d];
    all_strides[d] = strides[d];
  }
  all_sizes[plan.dims] = 2;
  all_strides[plan.dims] = 1;
  const int along = plan.along[i];
  const int32_t size = plan.size[along];
  fft_stages(out, FftSlots{size, strides[along], size},
             FftLines(all_sizes, all_strides, plan.dims + 1, along),
             plan.length[i]);
  fft_combine(out, FftLines(all_sizes, all_strides, plan.dims, along), size,
              strides[along], forward);
}

}  // namespace orch
