// Rows of floats, sixteen at a time: what elementwise operators do in vectors.
#pragma once

#include <stdint.h>
#include <string.h>

#include "util/dot_mve.h"
#include "util/isa.h"
#include "util/types.h"

namespace orch {

/// Computes q0..q3 = f(q0..q3, q4..q7, p0, p1, p2), the numbers in r2, r3, r12.
/// Changes nothing else but vpr, fpscr and flags, and needs no stack.
using LaneFn = void (*)();

/// Whether a function of items has a form for vectors.
template <typename Fn>
inline constexpr bool kInLanes = false;

#if ORCH_FLOAT_VECTORS

/// Defines the LaneFn `name` from what it does with one vector, a macro of the
/// registers of x and y.
#define ORCH_LANES(name, one)                                   \
  __attribute__((naked, noinline, unused)) inline void name() { \
    asm(one("q0", "q4") one("q1", "q5") one("q2", "q6")         \
            one("q3", "q7") "bx lr\n");                         \
  }                                                             \
  static_assert(true)

/// Computes as many groups of sixteen items as it can; the number of items. It
/// stops before a group in which vectors would take a subnormal number for 0:
/// nothing of it is written, so `to` may be `a` or `b`. To: float, or bool for
/// functions that give integers 0 and 1.
template <typename To>
__attribute__((noinline)) int32_t lane_rows(LaneFn fn, const float* a,
                                            const float* b, To* to,
                                            int32_t count,
                                            const float (&p)[3]) {
  const FlushFlags flags;
  int32_t left = count / 16;
  if (left == 0) return 0;
  uint32_t bits[3];
  memcpy(bits, p, sizeof bits);
  register uint32_t first asm("r2") = bits[0];
  register uint32_t second asm("r3") = bits[1];
  register uint32_t third asm("r12") = bits[2];
#define ORCH_LANE_ROWS(store, size)                                       \
  asm volatile(                                                           \
      "1:\n"                                                              \
      "vldrw.32 q0, [%[a]], #16\n"                                        \
      "vldrw.32 q1, [%[a]], #16\n"                                        \
      "vldrw.32 q2, [%[a]], #16\n"                                        \
      "vldrw.32 q3, [%[a]], #16\n"                                        \
      "vldrw.32 q4, [%[b]], #16\n"                                        \
      "vldrw.32 q5, [%[b]], #16\n"                                        \
      "vldrw.32 q6, [%[b]], #16\n"                                        \
      "vldrw.32 q7, [%[b]], #16\n"                                        \
      "blx %[fn]\n"                                                       \
      "vmrs lr, fpscr\n"                                                  \
      "tst lr, #0x88\n"                                                   \
      "bne 2f\n" store " q0, [%[to]], #" size "\n" store                  \
      " q1, [%[to]], #" size "\n" store " q2, [%[to]], #" size "\n" store \
      " q3, [%[to]], #" size                                              \
      "\n"                                                                \
      "subs %[left], %[left], #1\n"                                       \
      "bne 1b\n"                                                          \
      "2:\n"                                                              \
      : [a] "+r"(a), [b] "+r"(b), [to] "+l"(to), [left] "+r"(left)        \
      : [fn] "r"(fn), "r"(first), "r"(second), "r"(third)                 \
      : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory")
  if constexpr (kIsSame<To, float>) {
    ORCH_LANE_ROWS("vstrw.32", "16");
  } else {
    ORCH_LANE_ROWS("vstrb.32", "4");
  }
#undef ORCH_LANE_ROWS
  FlushFlags::clear();
  return (count / 16 - left) * 16;
}

/// A function of items, and the same for vectors.
template <typename Fn>
struct InLanes {
  Fn fn;
  LaneFn lanes;  // may be null
  float p[3];

  template <typename... Items>
  auto operator()(Items... items) const {
    return fn(items...);
  }

  /// to[i] = fn(a[i], ...b[i]) for items that lie side by side; b is another
  /// input, or `a` and nothing else.
  template <typename To, typename... B>
  void row(const float* a, To* to, int32_t count, const B*... b) const {
    const Fn one = fn;  // out of memory, where `p` has to be
    for (;;) {
      const float* const others[] = {b..., a};
      const int32_t done =
          lanes == nullptr ? 0 : lane_rows(lanes, a, others[0], to, count, p);
      // What is left, or a group that vectors cannot compute.
      int32_t plain = count - done < 16 ? count - done : 16;
      count -= done + plain;
      a += done;
      to += done;
      ((b += done), ...);
      for (; plain > 0; --plain) *to++ = one(*a++, *b++...);
      if (count == 0) return;
    }
  }
};

template <typename Fn>
inline constexpr bool kInLanes<InLanes<Fn>> = true;
template <typename Fn>
inline constexpr bool kInLanes<const InLanes<Fn>> = true;

/// `fn`, which vectors of floats compute as `lanes` does with these numbers.
template <typename Fn>
InLanes<Fn> in_lanes(Type<float>, Fn fn, LaneFn lanes, float p0 = 0,
                     float p1 = 0, float p2 = 0) {
  return {fn, lanes, {p0, p1, p2}};
}
template <typename T, typename Fn, typename... Rest>
Fn in_lanes(Type<T>, Fn fn, Rest...) {
  return fn;
}

#else

#define ORCH_LANES(name, one) inline constexpr LaneFn name = nullptr

template <typename T, typename Fn, typename... Rest>
Fn in_lanes(Type<T>, Fn fn, Rest...) {
  return fn;
}

#endif

}  // namespace orch
