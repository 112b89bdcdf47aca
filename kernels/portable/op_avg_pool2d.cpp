#include "orch_selected/op_avg_pool2d.h"

#include "orch/kernel.h"
#include "prepared.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/pool.h"
#include "util/pool_lanes.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

/// Whether windows of tensors go through vectors, which takes 0.3 KB.
constexpr bool kTensorsInVectors = kFavourSpeed;

/// The flags of vectors, where there are some.
template <bool kVectors>
struct VectorFlags : FlushFlags {};
template <>
struct VectorFlags<false> {};

/// Averages of windows; count_of(rows, columns) is what a sum is divided by.
template <bool kVectors, typename T, typename CountOf>
ORCH_HOT void average(const AverageWindows& pool, const CountOf& count_of,
                      const T* input, T* out) {
  using C = Compute<T>;
  [[maybe_unused]] const VectorFlags<kVectors> flags{};
  for (int32_t n = 0; n < pool.batch; ++n) {
    for (int32_t h = 0; h < pool.rows.out; ++h) {
      const AverageWindow rows(pool.rows, h);
      for (int32_t w = 0; w < pool.columns.out; ++w) {
        const AverageWindow columns(pool.columns, w);
        // A window without any input gives 0, not 0 / 0.
        const bool empty = rows.size() == 0 || columns.size() == 0;
        const C denominator = empty ? C(1) : count_of(rows, columns);
        const WindowItems window = {{1, rows.size(), columns.size()},
                                    {0, pool.x_row, pool.x_column},
                                    {}};
        const T* const first = input + n * pool.x_image +
                               rows.first * pool.x_row +
                               columns.first * pool.x_column;
        T* const target =
            out + n * pool.y_image + h * pool.y_row + w * pool.y_column;
        const auto average_of = [&](int32_t c) {
          const T* row = first + c * pool.x_channel;
          C sum = 0;
          for (int32_t i = empty ? 0 : window.count[1]; i > 0; --i) {
            const T* item = row;
            for (int32_t j = window.count[2]; j > 0; --j) {
              sum += static_cast<C>(*item);
              item += pool.x_column;
            }
            row += pool.x_row;
          }
          target[c * pool.y_channel] = static_cast<T>(divide(sum, denominator));
        };
        if constexpr (kVectors) {
          each_channel<T>(0, pool.channels, average_of, [&](int32_t c) {
            return average_channels(
                {c, pool.channels, pool.x_channel, pool.y_channel, 0}, first,
                window, denominator, target);
          });
        } else {
          for (int32_t c = 0; c < pool.channels; ++c) average_of(c);
        }
      }
    }
  }
}

AverageWindows windows_of(const Pool<2>& pool, const Tensor& self,
                          const Tensor& out) {
  const Planes x(self, 0);
  const Planes y(out, 0);
  return {y.size[0],
          y.size[1],
          pool.axes[0],
          pool.axes[1],
          x.stride[0],
          x.stride[1],
          x.stride[2],
          x.stride[3],
          y.stride[0],
          y.stride[1],
          y.stride[2],
          y.stride[3],
          0,
          0};
}

}  // namespace

// aten::avg_pool2d.out(Tensor self, int[2] kernel_size, int[2] stride=[],
//   int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True,
//   int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)
Error avg_pool2d_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(7);

  int64_t divisor;
  Pool<2> pool;
  ORCH_TRY(prepare_avg_pool(args, pool, divisor));
  constexpr DtypeSet kDtypes = selected::aten_avg_pool2d_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const bool with_padding = args.boolean(5);
    average<kTensorsInVectors>(
        windows_of(pool, self, out),
        [=](const AverageWindow& rows, const AverageWindow& columns) {
          int64_t count = int64_t{rows.size()} * columns.size();
          if (with_padding) {
            count = int64_t{rows.padded_size} * columns.padded_size;
          }
          if (divisor != 0) count = divisor;
          return from_int<C>(count);
        },
        self.data<T>(), out.mutable_data<T>());
    return Error::Ok;
  });
}

// Prepared: floats, of windows with at most 2^31 - 1 items.
void avg_pool2d(const PreparedCall& prepared) {
  const auto& call = static_cast<const AverageWindowsCall&>(prepared);
  const AverageWindows& pool = *call.shape;
  average<true>(
      pool,
      [&](const AverageWindow& rows, const AverageWindow& columns) {
        int32_t count = rows.size() * columns.size();
        if (pool.with_padding != 0) {
          count = rows.padded_size * columns.padded_size;
        }
        return static_cast<float>(pool.divisor != 0 ? pool.divisor : count);
      },
      static_cast<const float*>(call.input), static_cast<float*>(call.out));
}

// Prepared: floats, of whole images; channels of the output are neighbours.
ORCH_HOT void avg_images(const PreparedCall& prepared) {
  const auto& call = static_cast<const AverageImagesCall&>(prepared);
  const AverageImages& pool = *call.shape;
  const float* input = static_cast<const float*>(call.input);
  float* out = static_cast<float*>(call.out);
  const FlushFlags flags;
  for (int32_t n = pool.batch; n > 0; --n) {
    each_channel<float>(
        0, pool.channels,
        [&](int32_t c) {
          const float* item = input + c * pool.x_channel;
          const int32_t step = pool.x_pixel;
          float sum = 0;
          int32_t left = pool.pixels;
          do {
            sum += *item;
            item += step;
            keep_apart(item);
          } while (--left != 0);
          out[c] = sum / pool.divisor;
        },
        [&](int32_t c) {
          return average_channels(
              {c, pool.channels, pool.x_channel, 1, 0}, input,
              {{1, 1, pool.pixels}, {0, 0, pool.x_pixel}, {}}, pool.divisor,
              out);
        });
    input += pool.x_image;
    out += pool.channels;
  }
}

}  // namespace orch::portable
