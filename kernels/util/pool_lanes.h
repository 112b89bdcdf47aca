// Windows of floats in four channels at a time, to the bits of the plain code.
#pragma once

#include <stdint.h>

#include "util/lanes.h"
#include "util/types.h"

namespace orch {

/// Where the items of a window lie, in three dimensions: how many along each,
/// and how far apart in memory and by index.
struct WindowItems {
  int32_t count[3];
  int32_t step[3];
  int32_t index_step[3];
};

/// Positions from `first` below `last`, `step` apart.
inline int32_t count_of(int32_t first, int32_t last, int32_t step) {
  return last > first ? (last - first + step - 1) / step : 0;
}

/// Where channels lie: steps are in items.
struct Channels {
  int32_t first;
  int32_t last;  // exclusive
  int32_t step;
  int32_t to_step;
  int32_t index_step;
};

/// Averages of windows of channels; `window` and `to` are those of channel 0.
/// The first channel that is left to the plain code, or the last one: some may
/// be computed twice, also those before the first one. Vectors have floats.
template <typename T, typename C>
int32_t average_channels(const Channels& channels, const T*, const WindowItems&,
                         C, T*) {
  return channels.first;
}

/// The largest items of windows of channels, and their indices: `index` is that
/// of the first item. The first channel that is left, as above.
template <typename T>
int32_t largest_of_channels(const Channels& channels, const T*,
                            const WindowItems&, int32_t, T*, int64_t*) {
  return channels.first;
}

#if ORCH_FLOAT_VECTORS

/// Distances of four channels, in bytes.
inline IntLanes distances(int32_t bytes) {
  IntLanes z;
  register uint32_t zero asm("r2") = 0;  // an even one
  asm("vidup.u32 %q0, %1, #1\n"
      "vmul.i32 %q0, %q0, %2"
      : "=w"(z.v), "+r"(zero)
      : "r"(bytes));
  return z;
}

/// The same item of four channels.
ORCH_ALWAYS_INLINE Lanes load_channels(const float* from, IntLanes at) {
  Lanes x;
  asm volatile("vldrw.u32 %q0, [%1, %q2]"
               : "=&w"(x.v)
               : "r"(from), "w"(at.v)
               : "memory");
  return x;
}
ORCH_ALWAYS_INLINE void store_channels(void* to, IntLanes at, IntLanes x) {
  asm volatile("vstrw.32 %q2, [%0, %q1]"
               :
               : "r"(to), "w"(at.v), "w"(x.v)
               : "memory");
}

/// Calls fn(item) for each item of a window, in order.
template <typename Fn>
ORCH_ALWAYS_INLINE void each_item(const float* first, const WindowItems& window,
                                  Fn fn) {
  for (int32_t k = window.count[0]; k > 0; --k) {
    const float* row = first;
    for (int32_t i = window.count[1]; i > 0; --i) {
      const float* item = row;
      for (int32_t j = window.count[2]; j > 0; --j) {
        fn(item);
        item += window.step[2];
      }
      row += window.step[1];
    }
    first += window.step[0];
  }
}

ORCH_HOT inline int32_t average_channels(const Channels& channels,
                                         const float* window,
                                         const WindowItems& items, float count,
                                         float* to) {
  const IntLanes at = distances(channels.step * 4);
  const IntLanes at_output = distances(channels.to_step * 4);
  int32_t c = channels.first;
  while (c < channels.last) {
    const int32_t first = c <= channels.last - 4 ? c : channels.last - 4;
    Lanes sum = 0.0F;
    each_item(window + first * channels.step, items,
              [&](const float* item) { sum = sum + load_channels(item, at); });
    Lanes y = sum / count;
    if (is_rare(y)) break;
    store_channels(to + first * channels.to_step, at_output, to_bits(y));
    c = first + 4;
  }
  return c;
}

ORCH_HOT inline int32_t largest_of_channels(const Channels& channels,
                                            const float* window,
                                            const WindowItems& items,
                                            int32_t index, float* to,
                                            int64_t* indices) {
  const IntLanes at = distances(channels.step * 4);
  int32_t c = channels.first;
  while (c < channels.last) {
    const int32_t first = c <= channels.last - 4 ? c : channels.last - 4;
    IntLanes largest = bits_of(0xFF800000U);  // -infinity
    IntLanes places = bits_of(static_cast<uint32_t>(index));
    const float* plane = window + first * channels.step;
    int32_t image = index;
    for (int32_t k = items.count[0]; k > 0; --k) {
      const float* row = plane;
      int32_t line = image;
      for (int32_t i = items.count[1]; i > 0; --i) {
        const float* item = row;
        int32_t place = line;
        for (int32_t j = items.count[2]; j > 0; --j) {
          const Lanes x = load_channels(item, at);
          const IntLanes here = bits_of(static_cast<uint32_t>(place));
          // Unlike `le`, `ge` is false for NaN, which stays: then the plain
          // code says which.
          asm("vcmp.f32 ge, %q0, %q2\n"
              "vpnot\n"
              "vpst\n"
              "vcmpt.f32 eq, %q0, %q0\n"
              "vpsel %q0, %q2, %q0\n"
              "vpsel %q1, %q3, %q1"
              : "+w"(largest.v), "+w"(places.v)
              : "w"(x.v), "w"(here.v));
          item += items.step[2];
          place += items.index_step[2];
        }
        row += items.step[1];
        line += items.index_step[1];
      }
      plane += items.step[0];
      image += items.index_step[0];
    }
    Lanes y = from_bits(largest);
    if (is_rare(y)) break;
    store_channels(to + first * channels.to_step,
                   distances(channels.to_step * 4), to_bits(y));
    const IntLanes words = distances(channels.index_step * 8);
    int64_t* const at_indices = indices + first * channels.index_step;
    store_channels(at_indices, words, places);
    store_channels(reinterpret_cast<int32_t*>(at_indices) + 1, words,
                   bits_of(0));
    c = first + 4;
  }
  return c;
}

#endif

/// Calls one(c) for each channel from `c` below `last`, or lanes(c), which
/// gives the first channel that it left, where there are vectors.
template <typename T, typename One, typename InLanes>
ORCH_ALWAYS_INLINE void each_channel(int32_t c, int32_t last, One one,
                                     [[maybe_unused]] InLanes lanes) {
  while (c < last) {
    int32_t end = last;
#if ORCH_FLOAT_VECTORS
    if constexpr (kIsSame<T, float>) {
      if (last >= 4) {
        c = lanes(c);
        if (c == last) return;
        FlushFlags::clear();
        if (c <= last - 4) end = c + 4;
      }
    }
#endif
    for (; c < end; ++c) one(c);
  }
}

}  // namespace orch
