// Four floats side by side: a function that is written once computes items and
// vectors, with the same bits.
//
// Compiled where vectors round as items do: MVE for floats, SSE2 and NEON of 64
// bits, the latter two unless the build favours size. MVE takes subnormal
// numbers for 0, and sets a flag; the caller computes such items one by one.
#pragma once

#include <stdint.h>

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) != 0
#define ORCH_VECTORS 1
#define ORCH_VECTORS_FLUSH 1
#elif (defined(__SSE2__) || defined(__aarch64__)) && !defined(__OPTIMIZE_SIZE__)
#define ORCH_VECTORS 1
#define ORCH_VECTORS_FLUSH 0
#else
#define ORCH_VECTORS 0
#define ORCH_VECTORS_FLUSH 0
#endif

#if ORCH_VECTORS

namespace orch {

typedef float FloatVector __attribute__((vector_size(16)));
typedef int32_t IntVector __attribute__((vector_size(16)));

/// Four integers, which wrap around, or the bits of four floats.
struct IntLanes {
  IntVector v;
};

/// Four floats.
struct Lanes {
  FloatVector v;

  Lanes() = default;
  Lanes(FloatVector items) : v(items) {}
#if ORCH_VECTORS_FLUSH
  Lanes(float item) { asm("vdup.32 %q0, %1" : "=w"(v) : "r"(item)); }
#else
  Lanes(float item) : v{item, item, item, item} {}
#endif
};

inline Lanes operator-(Lanes x) { return -x.v; }
inline Lanes operator+(Lanes x, Lanes y) { return x.v + y.v; }
inline Lanes operator-(Lanes x, Lanes y) { return x.v - y.v; }
inline Lanes operator*(Lanes x, Lanes y) { return x.v * y.v; }
inline Lanes operator-(float x, Lanes y) { return Lanes(x) - y; }

inline IntLanes to_bits(Lanes x) { return {reinterpret_cast<IntVector>(x.v)}; }
inline Lanes from_bits(IntLanes x) {
  return reinterpret_cast<FloatVector>(x.v);
}
inline IntLanes operator&(IntLanes x, IntLanes y) { return {x.v & y.v}; }
inline IntLanes operator|(IntLanes x, IntLanes y) { return {x.v | y.v}; }
inline IntLanes operator^(IntLanes x, IntLanes y) { return {x.v ^ y.v}; }
inline IntLanes operator-(IntLanes x) { return {-x.v}; }
inline IntLanes operator+(IntLanes x, IntLanes y) { return {x.v + y.v}; }
inline IntLanes operator-(IntLanes x, IntLanes y) { return {x.v - y.v}; }

#if ORCH_VECTORS_FLUSH

// Instructions have one factor or term in a core register, which compilers do
// not use: they would load vectors of constants.
#define ORCH_WITH_NUMBER(name, instruction)                              \
  inline Lanes name(Lanes x, float y) {                                  \
    Lanes z;                                                             \
    asm(instruction ".f32 %q0, %q1, %2" : "=w"(z.v) : "w"(x.v), "r"(y)); \
    return z;                                                            \
  }                                                                      \
  static_assert(true)
ORCH_WITH_NUMBER(operator+, "vadd");
ORCH_WITH_NUMBER(operator-, "vsub");
ORCH_WITH_NUMBER(operator*, "vmul");
#undef ORCH_WITH_NUMBER

// A quotient and a root of four items are four of one.
inline Lanes operator/(Lanes x, Lanes y) {
  register FloatVector a asm("q0") = x.v;
  register FloatVector b asm("q1") = y.v;
  asm("vdiv.f32 s0, s0, s4\n"
      "vdiv.f32 s1, s1, s5\n"
      "vdiv.f32 s2, s2, s6\n"
      "vdiv.f32 s3, s3, s7"
      : "+w"(a)
      : "w"(b));
  const FloatVector z = a;
  return z;
}
inline Lanes operator/(Lanes x, float y) {
  register FloatVector a asm("q0") = x.v;
  asm("vdiv.f32 s0, s0, %1\n"
      "vdiv.f32 s1, s1, %1\n"
      "vdiv.f32 s2, s2, %1\n"
      "vdiv.f32 s3, s3, %1"
      : "+w"(a)
      : "t"(y));
  const FloatVector z = a;
  return z;
}
inline Lanes operator/(float x, Lanes y) {
  register FloatVector a asm("q0") = y.v;
  asm("vdiv.f32 s0, %1, s0\n"
      "vdiv.f32 s1, %1, s1\n"
      "vdiv.f32 s2, %1, s2\n"
      "vdiv.f32 s3, %1, s3"
      : "+w"(a)
      : "t"(x));
  const FloatVector z = a;
  return z;
}
inline Lanes root_of(Lanes x) {
  register FloatVector a asm("q0") = x.v;
  asm("vsqrt.f32 s0, s0\n"
      "vsqrt.f32 s1, s1\n"
      "vsqrt.f32 s2, s2\n"
      "vsqrt.f32 s3, s3"
      : "+w"(a));
  const FloatVector z = a;
  return z;
}

inline IntLanes operator+(IntLanes x, int32_t y) {
  IntLanes z;
  asm("vadd.i32 %q0, %q1, %2" : "=w"(z.v) : "w"(x.v), "r"(y));
  return z;
}
/// Sets bits of one byte.
template <uint32_t kBits>
IntLanes with_bits(IntLanes x) {
  asm("vorr.i32 %q0, %1" : "+w"(x.v) : "i"(kBits));
  return x;
}
/// Without their fractions; those beyond int32_t are any number.
inline IntLanes whole_of(Lanes x) {
  IntLanes z;
  asm("vcvt.s32.f32 %q0, %q1" : "=w"(z.v) : "w"(x.v));
  return z;
}
inline Lanes number_of(IntLanes x) {
  Lanes z;
  asm("vcvt.f32.s32 %q0, %q1" : "=w"(z.v) : "w"(x.v));
  return z;
}
template <int kBy>
IntLanes shifted_up(IntLanes x) {
  IntLanes z;
  asm("vshl.i32 %q0, %q1, %2" : "=w"(z.v) : "w"(x.v), "i"(kBy));
  return z;
}
/// Keeps the sign.
template <int kBy>
IntLanes shifted_down(IntLanes x) {
  IntLanes z;
  asm("vshr.s32 %q0, %q1, %2" : "=w"(z.v) : "w"(x.v), "i"(kBy));
  return z;
}

/// The sign, and zeros.
inline IntLanes sign_of(Lanes x) {
  return shifted_up<31>(shifted_down<31>(to_bits(x)));
}

/// `x`, but not beyond the limits; NaN is one of them.
inline Lanes within(Lanes x, Lanes low, Lanes high) {
  asm("vmaxnm.f32 %q0, %q0, %q1\n"
      "vminnm.f32 %q0, %q0, %q2"
      : "+w"(x.v)
      : "w"(low.v), "w"(high.v));
  return x;
}

/// yes where x > limit, else no: for NaN, too.
inline Lanes if_above(Lanes x, float limit, Lanes yes, Lanes no) {
  Lanes z;
  asm("vcmp.f32 gt, %q1, %2\n"
      "vpsel %q0, %q3, %q4"
      : "=w"(z.v)
      : "w"(x.v), "r"(limit), "w"(yes.v), "w"(no.v));
  return z;
}
inline Lanes if_above(Lanes x, Lanes limit, Lanes yes, Lanes no) {
  Lanes z;
  asm("vcmp.f32 gt, %q1, %q2\n"
      "vpsel %q0, %q3, %q4"
      : "=w"(z.v)
      : "w"(x.v), "w"(limit.v), "w"(yes.v), "w"(no.v));
  return z;
}
/// yes where x >= limit, else no: for NaN, too.
inline Lanes if_at_least(Lanes x, float limit, Lanes yes, Lanes no) {
  Lanes z;
  asm("vcmp.f32 ge, %q1, %2\n"
      "vpsel %q0, %q3, %q4"
      : "=w"(z.v)
      : "w"(x.v), "r"(limit), "w"(yes.v), "w"(no.v));
  return z;
}

inline Lanes if_at_least(Lanes x, Lanes limit, Lanes yes, Lanes no) {
  Lanes z;
  asm("vcmp.f32 ge, %q1, %q2\n"
      "vpsel %q0, %q3, %q4"
      : "=w"(z.v)
      : "w"(x.v), "w"(limit.v), "w"(yes.v), "w"(no.v));
  return z;
}

/// sum + x[0] + x[1] + x[2] + x[3], in this order.
inline float sum_in_order(float sum, Lanes x) {
  register FloatVector a asm("q0") = x.v;
  asm("vadd.f32 %0, %0, s0\n"
      "vadd.f32 %0, %0, s1\n"
      "vadd.f32 %0, %0, s2\n"
      "vadd.f32 %0, %0, s3"
      : "+t"(sum)
      : "w"(a));
  return sum;
}

// After flags were cleared: volatile.
inline Lanes load_lanes(const float* from) {
  Lanes x;
  asm volatile("vldrw.32 %q0, [%1]"
               : "=w"(x.v)
               : "r"(from), "m"(*reinterpret_cast<const float(*)[4]>(from)));
  return x;
}
inline void store_lanes(float* to, Lanes x) {
  asm("vstrw.32 %q1, [%2]"
      : "=m"(*reinterpret_cast<float(*)[4]>(to))
      : "w"(x.v), "r"(to));
}

#else

inline Lanes operator/(Lanes x, Lanes y) { return x.v / y.v; }

inline IntLanes operator+(IntLanes x, int32_t y) { return {x.v + y}; }
/// Sets bits of one byte.
template <uint32_t kBits>
IntLanes with_bits(IntLanes x) {
  return {x.v | static_cast<int32_t>(kBits)};
}
/// Without their fractions; those beyond int32_t are any number.
inline IntLanes whole_of(Lanes x) {
  return {__builtin_convertvector(x.v, IntVector)};
}
inline Lanes number_of(IntLanes x) {
  return __builtin_convertvector(x.v, FloatVector);
}
template <int kBy>
IntLanes shifted_up(IntLanes x) {
  return {x.v << kBy};
}
/// Keeps the sign.
template <int kBy>
IntLanes shifted_down(IntLanes x) {
  return {x.v >> kBy};
}

/// The sign, and zeros.
inline IntLanes sign_of(Lanes x) { return {to_bits(x).v & INT32_MIN}; }

inline Lanes lanes_if(IntVector mask, Lanes yes, Lanes no) {
  const IntVector bits = (mask & to_bits(yes).v) | (~mask & to_bits(no).v);
  return reinterpret_cast<FloatVector>(bits);
}
/// yes where x > limit, else no: for NaN, too.
inline Lanes if_above(Lanes x, Lanes limit, Lanes yes, Lanes no) {
  return lanes_if(x.v > limit.v, yes, no);
}
/// yes where x >= limit, else no: for NaN, too.
inline Lanes if_at_least(Lanes x, Lanes limit, Lanes yes, Lanes no) {
  return lanes_if(x.v >= limit.v, yes, no);
}

/// `x`, but not beyond the limits; NaN is one of them.
inline Lanes within(Lanes x, Lanes low, Lanes high) {
  const Lanes raised = if_above(x, low, x, low);
  return if_above(high, raised, raised, high);
}

/// sum + x[0] + x[1] + x[2] + x[3], in this order.
inline float sum_in_order(float sum, Lanes x) {
  return (((sum + x.v[0]) + x.v[1]) + x.v[2]) + x.v[3];
}

inline Lanes root_of(Lanes x) {
#if defined(__aarch64__)
  asm("fsqrt %0.4s, %0.4s" : "+w"(x.v));
#else
  asm("sqrtps %0, %0" : "+x"(x.v));
#endif
  return x;
}

inline Lanes load_lanes(const float* from) {
  Lanes x;
  __builtin_memcpy(&x.v, from, sizeof x.v);
  return x;
}
inline void store_lanes(float* to, Lanes x) {
  __builtin_memcpy(to, &x.v, sizeof x.v);
}

#endif

inline Lanes operator+(float x, Lanes y) { return y + x; }
inline Lanes operator*(float x, Lanes y) { return y * x; }
namespace math {

/// What the functions of orch/math.h give for each item.
Lanes exp(Lanes x);
Lanes tanh(Lanes x);
Lanes erf(Lanes x);
Lanes sqrt(Lanes x);
Lanes expm1(Lanes x);
Lanes log(Lanes x);
Lanes log1p(Lanes x);
Lanes sin(Lanes x);
Lanes cos(Lanes x);

}  // namespace math
}  // namespace orch

#endif
