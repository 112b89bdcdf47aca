// Four floats side by side: a function that is written once computes items and
// vectors, with the same bits.
//
// Compiled where vectors round as items do: MVE for floats, SSE2 and NEON of 64
// bits, the latter two unless the build favours size. MVE takes subnormal
// numbers for 0, and sets a flag; the caller computes such items one by one.
#pragma once

#include <stdint.h>

#include "orch/favour.h"
#include "orch/half.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) != 0
#define ORCH_VECTORS 1
#define ORCH_VECTORS_FLUSH 1
#elif (defined(__SSE2__) || defined(__aarch64__)) && ORCH_FAVOUR_SPEED
#define ORCH_VECTORS 1
#define ORCH_VECTORS_FLUSH 0
#else
#define ORCH_VECTORS 0
#define ORCH_VECTORS_FLUSH 0
#endif
/// Vectors that know subnormal numbers, as those of hosts do.
#define ORCH_HOST_VECTORS (ORCH_VECTORS && !ORCH_VECTORS_FLUSH)
/// Whether the processor may have a * b - c with one rounding, unknown to the
/// compiler.
#if ORCH_HOST_VECTORS && defined(__x86_64__)
#define ORCH_FUSED 1
#else
#define ORCH_FUSED 0
#endif

#if ORCH_VECTORS

namespace orch {

typedef float FloatVector __attribute__((vector_size(16)));
typedef uint32_t IntVector __attribute__((vector_size(16)));

/// Four integers, signed or not, or the bits of four floats.
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

inline IntLanes bits_of(uint32_t bits) {
  IntLanes z;
  asm("vdup.32 %q0, %1" : "=w"(z.v) : "r"(bits));
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

/// The same without a sign.
template <int kBy>
IntLanes shifted_in_zeros(IntLanes x) {
  IntLanes z;
  asm("vshr.u32 %q0, %q1, %2" : "=w"(z.v) : "w"(x.v), "i"(kBy));
  return z;
}
/// 2^x for 0 <= x < 32.
inline IntLanes power_of_two(IntLanes x) {
  IntLanes z = bits_of(1);
  asm("vshl.u32 %q0, %q0, %q1" : "+w"(z.v) : "w"(x.v));
  return z;
}
/// Of products, the lower and the upper 32 bits, without signs.
inline IntLanes lower_product(IntLanes x, IntLanes y) {
  IntLanes z;
  asm("vmul.i32 %q0, %q1, %q2" : "=w"(z.v) : "w"(x.v), "w"(y.v));
  return z;
}
inline IntLanes upper_product(IntLanes x, IntLanes y) {
  IntLanes z;
  asm("vmulh.u32 %q0, %q1, %q2" : "=w"(z.v) : "w"(x.v), "w"(y.v));
  return z;
}
/// Zeros above the highest bit, which is not the lowest.
inline IntLanes leading_zeros(IntLanes x) {
  IntLanes z;
  asm("vclz.i32 %q0, %q1" : "=w"(z.v) : "w"(x.v));
  return z;
}
/// The nearest to an integer without a sign.
inline Lanes unsigned_number_of(IntLanes x) {
  Lanes z;
  asm("vcvt.f32.u32 %q0, %q1" : "=w"(z.v) : "w"(x.v));
  return z;
}
/// yes where x is negative, else no.
inline Lanes if_negative(IntLanes x, Lanes yes, Lanes no) {
  Lanes z;
  asm("vcmp.s32 lt, %q1, zr\n"
      "vpsel %q0, %q2, %q3"
      : "=w"(z.v)
      : "w"(x.v), "w"(yes.v), "w"(no.v));
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
/// Four halves, as floats.
inline Lanes load_lanes(const Half* from) {
  register FloatVector x asm("q0");
  asm volatile("vldrh.u32 q0, [%1]\n" ORCH_WIDEN_HALVES("0")
               : "=w"(x)
               : "l"(from), "m"(*reinterpret_cast<const Half(*)[4]>(from)));
  const FloatVector items = x;
  return items;
}
inline void store_lanes(Half* to, Lanes items) {
  register FloatVector x asm("q0") = items.v;
  asm(ORCH_NARROW_HALVES("0") "vstrh.32 q0, [%2]"
      : "=m"(*reinterpret_cast<Half(*)[4]>(to)), "+w"(x)
      : "l"(to));
}

#else

inline Lanes operator/(Lanes x, Lanes y) { return x.v / y.v; }

typedef int32_t SignedVector __attribute__((vector_size(16)));

inline IntLanes bits_of(uint32_t bits) {
  const IntVector v = {bits, bits, bits, bits};
  return {v};
}
inline IntLanes operator+(IntLanes x, int32_t y) {
  return {x.v + static_cast<uint32_t>(y)};
}
/// Sets bits of one byte.
template <uint32_t kBits>
IntLanes with_bits(IntLanes x) {
  return {x.v | kBits};
}
/// Without their fractions; those beyond int32_t are any number.
inline IntLanes whole_of(Lanes x) {
  return {
      reinterpret_cast<IntVector>(__builtin_convertvector(x.v, SignedVector))};
}
inline Lanes number_of(IntLanes x) {
  return __builtin_convertvector(reinterpret_cast<SignedVector>(x.v),
                                 FloatVector);
}
template <int kBy>
IntLanes shifted_up(IntLanes x) {
  return {x.v << kBy};
}
/// Keeps the sign.
template <int kBy>
IntLanes shifted_down(IntLanes x) {
  return {
      reinterpret_cast<IntVector>(reinterpret_cast<SignedVector>(x.v) >> kBy)};
}
/// The same without a sign.
template <int kBy>
IntLanes shifted_in_zeros(IntLanes x) {
  return {x.v >> kBy};
}
#if defined(__aarch64__)
inline IntLanes power_of_two(IntLanes x) { return {bits_of(1).v << x.v}; }
inline IntLanes lower_product(IntLanes x, IntLanes y) { return {x.v * y.v}; }
inline IntLanes upper_product(IntLanes x, IntLanes y) {
  IntLanes z;
  for (int i = 0; i < 4; ++i) {
    z.v[i] = static_cast<uint32_t>((uint64_t{x.v[i]} * y.v[i]) >> 32);
  }
  return z;
}
#else
/// 2^x for 0 <= x < 32: 2^31 is converted to the number of its bits, too.
inline IntLanes power_of_two(IntLanes x) {
  return whole_of(from_bits(shifted_up<23>(x) + 0x3F800000));
}
typedef uint64_t WideVector __attribute__((vector_size(16)));
/// Products of the even items.
inline WideVector products(IntVector x, IntVector y) {
  asm("pmuludq %1, %0" : "+x"(x) : "x"(y));
  return reinterpret_cast<WideVector>(x);
}
inline IntVector odd_items(IntLanes x) {
  return reinterpret_cast<IntVector>(reinterpret_cast<WideVector>(x.v) >> 32);
}
/// Of products, the lower and the upper 32 bits, without signs.
inline IntLanes lower_product(IntLanes x, IntLanes y) {
  const WideVector odd = products(odd_items(x), odd_items(y)) << 32;
  const WideVector even = products(x.v, y.v) & 0xFFFFFFFFU;
  return {reinterpret_cast<IntVector>(odd | even)};
}
inline IntLanes upper_product(IntLanes x, IntLanes y) {
  const WideVector odd = products(odd_items(x), odd_items(y)) >> 32 << 32;
  const WideVector even = products(x.v, y.v) >> 32;
  return {reinterpret_cast<IntVector>(odd | even)};
}
#endif
/// Zeros above the highest bit, which is not the lowest: from the exponent of
/// half of it, without the bits behind that could round it up.
inline IntLanes leading_zeros(IntLanes x) {
  const IntLanes half = shifted_in_zeros<1>(x);
  const IntLanes top = {half.v & ~(half.v >> 1)};
  return {bits_of(127 + 30).v - (to_bits(number_of(top)).v >> 23)};
}
/// The nearest to an integer without a sign: only the sum is rounded.
inline Lanes unsigned_number_of(IntLanes x) {
  const Lanes upper = number_of(shifted_in_zeros<16>(x)) * 65536.0F;
  return upper + number_of(IntLanes{x.v & 0xFFFFU});
}

/// The sign, and zeros.
inline IntLanes sign_of(Lanes x) { return {to_bits(x).v & 0x80000000U}; }

inline Lanes lanes_if(IntVector mask, Lanes yes, Lanes no) {
  const IntVector bits = (mask & to_bits(yes).v) | (~mask & to_bits(no).v);
  return reinterpret_cast<FloatVector>(bits);
}
/// yes where x is negative, else no.
inline Lanes if_negative(IntLanes x, Lanes yes, Lanes no) {
  return lanes_if(shifted_down<31>(x).v, yes, no);
}
/// yes where x > limit, else no: for NaN, too.
inline Lanes if_above(Lanes x, Lanes limit, Lanes yes, Lanes no) {
  return lanes_if(reinterpret_cast<IntVector>(x.v > limit.v), yes, no);
}
/// yes where x >= limit, else no: for NaN, too.
inline Lanes if_at_least(Lanes x, Lanes limit, Lanes yes, Lanes no) {
  return lanes_if(reinterpret_cast<IntVector>(x.v >= limit.v), yes, no);
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

/// What the functions of orch/math.h give for each item, or NaN: for arguments
/// that are rare, as the caller computes items with that result one by one.
Lanes exp(Lanes x);
Lanes tanh(Lanes x);
Lanes erf(Lanes x);
Lanes sqrt(Lanes x);
Lanes expm1(Lanes x);
Lanes log(Lanes x);
Lanes log1p(Lanes x);
Lanes log2(Lanes x);
Lanes log10(Lanes x);
Lanes sin(Lanes x);
Lanes cos(Lanes x);
Lanes tan(Lanes x);
Lanes asin(Lanes x);
Lanes acos(Lanes x);
Lanes atan(Lanes x);
Lanes sinh(Lanes x);
Lanes cosh(Lanes x);
Lanes asinh(Lanes x);
Lanes acosh(Lanes x);
Lanes atanh(Lanes x);

/// A logarithm in two parts, for powers of one base: NaN where it is not one of
/// a positive and finite number.
struct LogLanes {
  Lanes high;
  Lanes low;
};
LogLanes log_in_parts(Lanes x);
Lanes pow(const LogLanes& log, Lanes y);
inline Lanes pow(Lanes x, Lanes y) { return pow(log_in_parts(x), y); }

}  // namespace math
}  // namespace orch

#endif
