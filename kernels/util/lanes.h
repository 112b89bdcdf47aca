// Rows of floats, sixteen at a time: what elementwise operators do in vectors.
#pragma once

#include <stdint.h>
#include <string.h>

#include "orch/lanes.h"
#include "util/dot_mve.h"
#include "util/isa.h"
#include "util/types.h"

namespace orch {

/// Computes q0..q3 = f(q0..q3, q4..q7, p0, p1, p2), the numbers in r2, r3, r12.
/// Changes nothing else but q4..q7, vpr, fpscr and flags, and needs no stack.
using LaneFn = void (*)();

/// Whether a function of items has a form for vectors.
template <typename Fn>
inline constexpr bool kInLanes = false;

/// Whether the target converts halves side by side.
template <typename T>
inline constexpr bool kHalvesInLanes =
    ORCH_VECTORS_FLUSH != 0 && kIsSame<T, Half>;

#if ORCH_FLOAT_VECTORS

/// Defines the LaneFn `name` from what it does with one vector, a macro of the
/// registers of x and y, after something that it does once.
#define ORCH_LANES_AFTER(name, once, one)                       \
  __attribute__((naked, noinline, unused)) inline void name() { \
    asm(once one("q0", "q4") one("q1", "q5") one("q2", "q6")    \
            one("q3", "q7") "bx lr\n");                         \
  }                                                             \
  static_assert(true)
#define ORCH_LANES(name, one) ORCH_LANES_AFTER(name, "", one)

/// Computes as many groups of sixteen items as it can; the number of items. It
/// stops before a group in which vectors would take a subnormal number for 0:
/// nothing of it is written, so `to` may be `a` or `b`. From: float, or Half,
/// whose items become floats. To: the same, or bool for functions that give
/// integers 0 and 1.
template <typename From, typename To>
__attribute__((noinline)) int32_t lane_rows(LaneFn fn, const From* a,
                                            const From* b, To* to,
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
#define ORCH_LANE_ROWS(load, store) \
  asm volatile(                                                               \
      "1:\n" load("0", "a") load("1", "a") load("2", "a") load("3", "a")      \
          load("4", "b") load("5", "b") load("6", "b") load("7", "b")         \
      "blx %[fn]\n"                                                           \
      "vmrs lr, fpscr\n"                                                      \
      "tst lr, #0x88\n"                                                       \
      "bne 2f\n"                                                              \
      store("0") store("1") store("2") store("3")                             \
      "subs %[left], %[left], #1\n"                                           \
      "bne 1b\n"                                                              \
      "2:\n"                                                                  \
      : [a] "+l"(a), [b] "+l"(b), [to] "+l"(to), [left] "+r"(left)            \
      : [fn] "r"(fn), "r"(first), "r"(second), "r"(third)                     \
      : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory")
#define ORCH_LOAD_FLOATS(q, from) "vldrw.32 q" q ", [%[" from "]], #16\n"
#define ORCH_LOAD_HALVES(q, from) \
  "vldrh.u32 q" q ", [%[" from "]], #8\n" ORCH_WIDEN_HALVES(q)
#define ORCH_STORE_FLOATS(q) "vstrw.32 q" q ", [%[to]], #16\n"
#define ORCH_STORE_HALVES(q) \
  ORCH_NARROW_HALVES(q) "vstrh.32 q" q ", [%[to]], #8\n"
#define ORCH_STORE_BOOLS(q) "vstrb.32 q" q ", [%[to]], #4\n"
  constexpr bool kHalves = kIsSame<From, Half>;
  if constexpr (kHalves && kIsSame<To, Half>) {
    ORCH_LANE_ROWS(ORCH_LOAD_HALVES, ORCH_STORE_HALVES);
  } else if constexpr (kHalves) {
    ORCH_LANE_ROWS(ORCH_LOAD_HALVES, ORCH_STORE_BOOLS);
  } else if constexpr (kIsSame<To, float>) {
    ORCH_LANE_ROWS(ORCH_LOAD_FLOATS, ORCH_STORE_FLOATS);
  } else {
    ORCH_LANE_ROWS(ORCH_LOAD_FLOATS, ORCH_STORE_BOOLS);
  }
#undef ORCH_LOAD_FLOATS
#undef ORCH_LOAD_HALVES
#undef ORCH_STORE_FLOATS
#undef ORCH_STORE_HALVES
#undef ORCH_STORE_BOOLS
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
  template <typename From, typename To, typename... B>
  ORCH_ALWAYS_INLINE void row(const From* a, To* to, int32_t count,
                              const B*... b) const {
    const Fn one = fn;  // out of memory, where `p` has to be
    for (;;) {
      const From* const others[] = {b..., a};
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

/// `fn`, which vectors of floats compute as `lanes` does with these numbers. Of
/// halves, it computes in float and rounds once.
template <typename Fn>
InLanes<Fn> in_lanes(Type<float>, Fn fn, LaneFn lanes, float p0 = 0,
                     float p1 = 0, float p2 = 0) {
  return {fn, lanes, {p0, p1, p2}};
}
template <typename Fn>
InLanes<Fn> in_lanes(Type<Half>, Fn fn, LaneFn lanes, float p0 = 0,
                     float p1 = 0, float p2 = 0) {
  return {fn, lanes, {p0, p1, p2}};
}
template <typename T, typename Fn, typename... Rest>
Fn in_lanes(Type<T>, Fn fn, Rest...) {
  return fn;
}

#else

#define ORCH_LANES(name, one) inline constexpr LaneFn name = nullptr
#define ORCH_LANES_AFTER(name, once, one) ORCH_LANES(name, one)

struct FlushFlags {
  FlushFlags() {}
  static void clear() {}
};

template <typename T, typename Fn, typename... Rest>
Fn in_lanes(Type<T>, Fn fn, Rest...) {
  return fn;
}

#endif

#if ORCH_VECTORS

/// Whether items of `y` are to be computed one by one: those that are NaN, and
/// all if vectors have treated a number as 0 that is none.
ORCH_ALWAYS_INLINE bool is_rare(Lanes& y) {
#if ORCH_VECTORS_FLUSH
  uint32_t flags;
  uint32_t nan;
  asm volatile(
      "vcmp.f32 ne, %q2, %q2\n"
      "vmrs %1, p0\n"
      "vmrs %0, fpscr"
      : "=r"(flags), "=r"(nan), "+w"(y.v));
  return ((flags & 0x88) | nan) != 0;
#else
  uint64_t nan[2];
  const auto mask = y.v != y.v;
  __builtin_memcpy(nan, &mask, sizeof nan);
  return (nan[0] | nan[1]) != 0;
#endif
}

/// A function of items that also takes four of each; of halves as well, which
/// it computes in float.
template <typename Fn>
struct OfLanes {
  Fn fn;

  template <typename T, typename... B>
  auto operator()(T a, B... b) const {
    if constexpr (kIsHalf<T>) {
      return static_cast<T>(
          fn(static_cast<float>(a), static_cast<float>(b)...));
    } else {
      return fn(a, b...);
    }
  }

  /// to[i] = fn(a[i], ...b[i]) for items that lie side by side.
  template <typename T, typename... B>
  __attribute__((noinline)) void row(const T* a, T* to, int32_t count,
                                     const B*... b) const {
    const FlushFlags flags;
    for (;;) {
      for (; count >= 4; count -= 4) {
        Lanes y = fn(load_lanes(a), load_lanes(b)...);
        if (is_rare(y)) break;
        store_lanes(to, y);
        a += 4;
        to += 4;
        ((b += 4), ...);
      }
      // What is left, or items that vectors cannot compute.
      int32_t plain = count < 4 ? count : 4;
      count -= plain;
      for (; plain > 0; --plain) *to++ = (*this)(*a++, *b++...);
      if (count == 0) return;
      FlushFlags::clear();
    }
  }
};

/// yes() where x < 0, else no(): both are computed.
template <typename Yes, typename No>
Lanes if_negative(Lanes x, Yes yes, No no) {
  return if_above(Lanes(0.0F), x, yes(), no());
}

template <typename Fn>
inline constexpr bool kInLanes<OfLanes<Fn>> = true;
template <typename Fn>
inline constexpr bool kInLanes<const OfLanes<Fn>> = true;

/// `fn`, which is written for items and for Lanes.
template <typename Fn>
OfLanes<Fn> of_lanes(Type<float>, Fn fn) {
  return {fn};
}

#endif

template <typename T, typename Fn>
Fn of_lanes(Type<T>, Fn fn) {
  return fn;
}

/// yes() if x < 0, else no().
template <typename F, typename Yes, typename No>
F if_negative(F x, Yes yes, No no) {
  return x < 0 ? yes() : no();
}

}  // namespace orch
