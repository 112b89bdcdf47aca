// Keyword spotting in C++17, with arrays whose lengths the compiler checks: the call
// copies the input in and the output out. Needs nothing but the header and the library
// that the build of profiles/kws-host.toml made.

#include <cstddef>
#include <cstdio>

#include "kws-host.h"

namespace {

float features[KWS_HOST_KWS_FORWARD_INPUT0_COUNT];
float scores[KWS_HOST_KWS_FORWARD_OUTPUT0_COUNT];

/// In a product, the features of the last second of sound. Here they come from
/// standard input, as they lie in memory. False: there were too few.
template <std::size_t kCount>
bool get_features(float (&into)[kCount]) {
  return std::fread(into, sizeof *into, kCount, stdin) == kCount;
}

}  // namespace

int main() {
  if (!get_features(features)) {
    std::fputs("too few features on standard input\n", stderr);
    return 2;
  }

  const orch_status status = kws_host::kws::forward(features, scores);
  if (status != ORCH_OK) {
    std::fprintf(stderr, "%s\n", orch_status_text(status));
    return 1;
  }

  int best = 0;
  for (int i = 0; i < KWS_HOST_KWS_FORWARD_OUTPUT0_COUNT; ++i) {
    if (scores[i] > scores[best]) best = i;
    std::printf("%2d %.9g\n", i, static_cast<double>(scores[i]));
  }
  std::printf("keyword %d\n", best);
  return 0;
}
