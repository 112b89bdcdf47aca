// Windows of fractional pooling.
#pragma once

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/types.h"
#include "util/volumes.h"

namespace orch {

/// A window along one dimension.
struct FractionalWindow {
  int32_t first;
  int32_t last;  // exclusive
};

/// Errors: InvalidArgument (not from 0 to 1).
template <typename T>
Error check_sample(T sample) {
  const auto number = number_of(sample);
  ORCH_CHECK_DATA(number >= 0 && number <= 1, Error::InvalidArgument);
  return Error::Ok;
}

/// The window of size `window` for item `at` of `out` items along a dimension
/// of `in` items: they begin at steps of (in - window) / (out - 1) from the
/// random part `sample` of one on, the last one at the end. Each operation is
/// rounded to T. Source: PyTorch,
/// aten/src/ATen/native/FractionalMaxPooling.h.
///
/// Errors: InvalidArgument (the sample is not from 0 to 1).
template <typename T>
Error fractional_window(T sample, int32_t in, int32_t out, int32_t window,
                        int32_t at, FractionalWindow& found) {
  using C = Compute<T>;
  const auto rounded = [](C number) { return static_cast<C>(T(number)); };
  const C from = static_cast<C>(sample);
  // Where memories overlap, samples may change.
  ORCH_TRY_DATA(check_sample(sample));
  const int32_t most = in - window;
  int32_t first = most;
  if (at < out - 1) {
    const C step = rounded(rounded(static_cast<C>(most)) /
                           rounded(static_cast<C>(out - 1)));
    const C place = rounded(rounded(rounded(static_cast<C>(at)) + from) * step);
    const C start = rounded(from * step);
    // Roundings may lead a little further.
    ORCH_CHECK_DATA(place - start <= static_cast<C>(most) + 1,
                    Error::InvalidArgument);
    first = static_cast<int32_t>(place) - static_cast<int32_t>(start);
    if (first > most) first = most;
  }
  found = {first, first + window};
  return Error::Ok;
}

/// aten::fractional_max_pool<kDims>d.output(Tensor self, int[] kernel_size,
///   int[] output_size, Tensor random_samples, *, Tensor(a!) output,
///   Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
///
/// `random_samples`, [N, C, kDims], has a number for each axis: those of images
/// for columns, then rows, those of volumes for images, rows, columns. kBits:
/// dtypes of `self`. Errors: InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits, int kDims>
Error fractional_max_pool(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& samples = args.tensor(3);
  Tensor& out = args.tensor(4);
  Tensor& indices = args.tensor(5);

  ORCH_CHECK(self.dim == kDims + 1 || self.dim == kDims + 2,
             Error::InvalidArgument);
  ORCH_CHECK(self.dtype == out.dtype && samples.dtype == out.dtype &&
                 indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  int32_t window[kDims];
  ORCH_TRY(read_ints(args.int_list(1), kDims, 1, window));
  int32_t sizes[kDims + 2];
  const int first = self.dim - kDims;
  ORCH_TRY(read_ints(args.int_list(2), kDims, 1, sizes + first));
  for (int i = 0; i < first; ++i) sizes[i] = self.size(i);
  ORCH_CHECK(sizes[first - 1] > 0, Error::InvalidArgument);
  for (int i = 0; i < kDims; ++i) {
    // The sum is below 2^31.
    ORCH_CHECK(sizes[first + i] + window[i] - 1 <= self.size(first + i),
               Error::InvalidArgument);
  }
  const int32_t images = first == 2 ? sizes[0] : 1;
  ORCH_CHECK(samples.dim == 3 && samples.size(0) >= images &&
                 samples.size(1) == sizes[first - 1] &&
                 samples.size(2) == kDims,
             Error::InvalidArgument);
  const Error checked = switch_dtype<kBits>(samples.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for (int32_t i = samples.numel(); i-- > 0;) {
      ORCH_TRY_DATA(check_sample(samples.data<T>()[i]));
    }
    return Error::Ok;
  });
  ORCH_TRY_DATA(checked);
  const Span<const int32_t> shape{sizes, self.dim};
  ORCH_TRY(resize_output(out, shape, self, samples));
  ORCH_TRY(resize_output(indices, shape, self, samples, out));
  // The last five dimensions, of which images have four.
  constexpr int kBatch = 3 - kDims;
  constexpr int kChannel = 4 - kDims;
  const Volumes x(self);
  const Volumes y(out);
  const Volumes z(indices);
  const Strides at_sample(samples);
  constexpr int32_t kStep[] = {1, 1, 1};
  return switch_dtype<kBits>(self.dtype, [&](auto type) -> Error {
    using T = typename decltype(type)::type;
    for (int32_t n = 0; n < y.size[kBatch]; ++n) {
      for (int32_t c = 0; c < y.size[kChannel]; ++c) {
        const T* const volume =
            self.data<T>() + n * x.stride[kBatch] + c * x.stride[kChannel];
        const T* const sample =
            samples.data<T>() + n * at_sample[0] + c * at_sample[1];
        // Window `at` along a dimension, the last of which is 2.
        const auto find = [&](int dim, int32_t at, FractionalWindow& found) {
          const int axis = dim - (3 - kDims);
          return fractional_window(
              sample[(kDims == 2 ? 1 - axis : axis) * at_sample[2]],
              x.size[2 + dim], y.size[2 + dim], window[axis], at, found);
        };
        const int32_t images_out = kDims == 3 ? y.size[2] : 1;
        for (int32_t d = 0; d < images_out; ++d) {
          FractionalWindow depth = {0, 1};
          if constexpr (kDims == 3) ORCH_TRY_DATA(find(0, d, depth));
          for (int32_t h = 0; h < y.size[3]; ++h) {
            FractionalWindow rows;
            ORCH_TRY_DATA(find(1, h, rows));
            for (int32_t w = 0; w < y.size[4]; ++w) {
              FractionalWindow columns;
              ORCH_TRY_DATA(find(2, w, columns));
              int64_t index;
              const auto most = largest_of<Compute<T>>(volume, x, depth, rows,
                                                       columns, kStep, index);
              const auto place = [&](const Volumes& v) {
                return n * v.stride[kBatch] + c * v.stride[kChannel] +
                       (kDims == 3 ? d * v.stride[2] : 0) + h * v.stride[3] +
                       w * v.stride[4];
              };
              out.mutable_data<T>()[place(y)] = static_cast<T>(most);
              indices.mutable_data<int64_t>()[place(z)] = index;
            }
          }
        }
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch
