// The vector instructions that the kernels use beside those they write as
// assembly. gcc has a header for them; clang's own comes from its compiler's
// folder, which zig does not search, so its built-in functions are named here.
#pragma once

#include <stdint.h>

#if defined(__clang__)

#define ORCH_MVE_VECTOR(lanes)                \
  __attribute__((__neon_vector_type__(lanes), \
                 __clang_arm_mve_strict_polymorphism))
#define ORCH_MVE(result, name, ...)                                        \
  static inline                                                            \
      __attribute__((__clang_arm_builtin_alias(__builtin_arm_mve_##name))) \
      result name(__VA_ARGS__);

typedef ORCH_MVE_VECTOR(4) int32_t int32x4_t;

extern "C" {
ORCH_MVE(int32x4_t, vldrbq_s32, const int8_t*)
ORCH_MVE(int32x4_t, vldrwq_s32, const int32_t*)
ORCH_MVE(void, vstrwq_s32, int32_t*, int32x4_t)
ORCH_MVE(int32x4_t, vaddq_s32, int32x4_t, int32x4_t)
ORCH_MVE(int32x4_t, vaddq_n_s32, int32x4_t, int32_t)
ORCH_MVE(int32x4_t, vdupq_n_s32, int32_t)
ORCH_MVE(int32x4_t, vmulq_s32, int32x4_t, int32x4_t)
}  // extern "C"

#undef ORCH_MVE
#undef ORCH_MVE_VECTOR

#else
#include <arm_mve.h>
#endif
