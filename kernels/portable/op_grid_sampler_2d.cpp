#include "orch_selected/op_grid_sampler_2d.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/interpolate.h"
#include "util/isa.h"

namespace orch::portable {
namespace {

// Values of the arguments. Source: PyTorch, GridSampler.h.
enum Mode : int32_t { kBilinear, kNearest, kBicubic };
enum Padding : int32_t { kZeros, kBorder, kReflection };

/// The input items along one dimension that an output item is made of; -1
/// where there is none, which counts as 0.
template <typename C>
struct Taps {
  int count;
  int32_t at[4];
  C weight[4];
};

/// How coordinates, -1 to 1, become input items along one dimension. Source:
/// PyTorch, GridSamplerKernel.cpp.
template <typename C>
struct GridAxis {
  int32_t size;
  bool corners;  // -1 and 1 are the outermost items, not their outer edges
  int32_t padding;
  int32_t mode;

  /// The item at a coordinate that counts in items.
  C inside(C x) const {
    const C last = static_cast<C>(size - 1);
    if (padding == kReflection) {
      const C low = corners ? C(0) : C(-0.5F);
      const C twice = 2 * (corners ? last : static_cast<C>(size));
      if (twice == 0) return 0;
      C away = x - low;
      if (away < 0) away = -away;
      const C rest = away - floor_real(away / twice) * twice;
      x = (twice - rest < rest ? twice - rest : rest) + low;
    }
    if (padding != kZeros) {
      if (!(x > 0)) return 0;  // NaN as well
      if (x > last) return last;
    }
    return x;
  }

  int32_t index(C x) const {
    return x >= 0 && x < static_cast<C>(size) ? static_cast<int32_t>(x) : -1;
  }

  __attribute__((noinline)) void find(C coordinate, Taps<C>& taps) const {
    const C half = static_cast<C>(corners ? size - 1 : size) / 2;
    C x = (coordinate + 1) * half;
    if (!corners) x -= C(0.5F);
    if (mode == kBicubic) {
      const C first = floor_real(x);
      const C t = x - first;
      taps.count = 4;
      taps.weight[0] = outer_weight(t + 1);
      taps.weight[1] = inner_weight(t);
      taps.weight[2] = inner_weight(1 - t);
      taps.weight[3] = outer_weight(2 - t);
      for (int i = 0; i < 4; ++i) {
        taps.at[i] = index(inside(first + static_cast<C>(i - 1)));
      }
      return;
    }
    x = inside(x);
    const C first = mode == kNearest ? round_real(x) : floor_real(x);
    taps.at[0] = index(first);
    taps.weight[0] = 1;
    taps.count = 1;
    if (mode == kBilinear) {
      taps.count = 2;
      taps.at[1] = index(first + 1);
      taps.weight[1] = x - first;
      taps.weight[0] = 1 - taps.weight[1];
    }
  }

 private:
  /// Cubic convolution, at a distance up to 1 and up to 2.
  static C inner_weight(C x) {
    constexpr C a = C(-0.75F);
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  }
  static C outer_weight(C x) {
    constexpr C a = C(-0.75F);
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  }
};

template <typename T>
ORCH_HOT void sample(const Tensor& input, const Tensor& grid, int32_t mode,
                     int32_t padding, bool corners, Tensor& out) {
  using C = Real<T>;
  const Strides from(input);
  const Strides at_grid(grid);
  const Strides to(out);
  const GridAxis<C> rows = {input.size(2), corners, padding, mode};
  const GridAxis<C> columns = {input.size(3), corners, padding, mode};
  for (int32_t n = 0; n < out.size(0); ++n) {
    for (int32_t h = 0; h < out.size(2); ++h) {
      for (int32_t w = 0; w < out.size(3); ++w) {
        const T* const point =
            grid.data<T>() + n * at_grid[0] + h * at_grid[1] + w * at_grid[2];
        Taps<C> x;
        Taps<C> y;
        columns.find(static_cast<C>(point[0]), x);
        rows.find(static_cast<C>(point[at_grid[3]]), y);
        const T* plane = input.data<T>() + n * from[0];
        T* target = out.mutable_data<T>() + n * to[0] + h * to[2] + w * to[3];
        int32_t at[16];
        for (int i = 0, t = 0; i < y.count; ++i) {
          for (int k = 0; k < x.count; ++k, ++t) {
            at[t] = y.at[i] < 0 || x.at[k] < 0
                        ? -1
                        : y.at[i] * from[2] + x.at[k] * from[3];
          }
        }
        for (int32_t c = out.size(1); c > 0; --c) {
          C sum = 0;
          const int32_t* tap = at;
          for (int i = 0; i < y.count; ++i) {
            C across = 0;
            for (int k = 0; k < x.count; ++k, ++tap) {
              const C value = *tap < 0 ? C(0) : static_cast<C>(plane[*tap]);
              if (mode == kBicubic) {
                across += value * x.weight[k];
              } else {
                sum += value * (y.weight[i] * x.weight[k]);
              }
            }
            if (mode == kBicubic) sum += across * y.weight[i];
          }
          *target = item_from<T>(sum);
          plane += from[1];
          target += to[1];
        }
      }
    }
  }
}

}  // namespace

// aten::grid_sampler_2d.out(Tensor input, Tensor grid, int interpolation_mode,
//   int padding_mode, bool align_corners, *, Tensor(a!) out) -> Tensor(a!)
Error grid_sampler_2d_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& grid = args.tensor(1);
  Tensor& out = args.tensor(5);

  int32_t mode;
  int32_t padding;
  ORCH_CHECK(input.dtype == out.dtype && grid.dtype == out.dtype,
             Error::InvalidArgument);
  ORCH_CHECK(input.dim == 4 && grid.dim == 4 && input.size(0) == grid.size(0) &&
                 grid.size(3) == 2 && input.size(2) > 0 && input.size(3) > 0,
             Error::InvalidArgument);
  ORCH_TRY(read_int(args.integer(2), kBilinear, mode));
  ORCH_TRY(read_int(args.integer(3), kZeros, padding));
  ORCH_CHECK(mode <= kBicubic && padding <= kReflection,
             Error::InvalidArgument);
  const int32_t sizes[] = {input.size(0), input.size(1), grid.size(1),
                           grid.size(2)};
  ORCH_TRY(resize_output(out, sizes, input, grid));
  constexpr DtypeSet kDtypes = selected::aten_grid_sampler_2d_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    sample<typename decltype(type)::type>(input, grid, mode, padding,
                                          args.boolean(4), out);
    return Error::Ok;
  });
}

}  // namespace orch::portable
