// Firmware that averages windows of every sum. The request has three words: the
// largest window, a zero point and the bits of a scale. For each window from
// one tap on, the response has averages that CMSIS-NN and PyTorch would give of
// every sum in order, then of items in no order. Channels lie one item apart,
// as taps do, so that each channel's window begins an item later.
#include <stdint.h>

#include "cortex_m/prepared.h"
#include "orch/platform.h"

namespace orch::cortex_m {
void quantized_avg_image(const PreparedCall& call);
void quantized_avg_image_floats(const PreparedCall& call);
}  // namespace orch::cortex_m

namespace platform = orch::platform;
using orch::cortex_m::AverageImageCall;

constexpr int32_t kMostTaps = 300;
constexpr int32_t kUnordered = 500;
int8_t items[256 * kMostTaps];
int8_t averages[256 * kMostTaps];

int orch_application(const char* request, const char* response) {
  const platform::File from = platform::open_for_reading(request);
  const platform::File to = platform::open_for_writing(response);
  AverageImageCall call;
  if (!platform::read(from, &call.items, sizeof call.items)) return 3;
  call.input = items;
  call.out = averages;
  call.batch = 1;
  while (platform::read(from, &call.pixels, sizeof call.pixels)) {
    for (int unordered = 0; unordered < 2; ++unordered) {
      const int32_t count = 256 * call.pixels;
      for (int32_t i = 0; i < count; ++i) {
        uint32_t bits = static_cast<uint32_t>(i) * 2654435761U;
        bits = (bits ^ bits >> 15) * 2246822519U;
        const uint32_t ordered = static_cast<uint32_t>(i / call.pixels) - 128;
        items[i] = static_cast<int8_t>(unordered != 0 ? bits >> 24 : ordered);
      }
      int32_t channels = count - call.pixels + 1;
      if (unordered != 0 && channels > kUnordered) channels = kUnordered;
      call.taps = {channels, 0, 1};
      const uint32_t size = static_cast<uint32_t>(channels);
      orch::cortex_m::quantized_avg_image(call);
      if (!platform::write(to, averages, size)) return 4;
      orch::cortex_m::quantized_avg_image_floats(call);
      if (!platform::write(to, averages, size)) return 4;
    }
  }
  platform::close(from);
  platform::close(to);
  return 0;
}
