// Float math that gives the same bits on every target and compiler.
//
// Built from + - * /, integer operations and the square roots of FPUs only, and
// fused operations of FPUs where they give what those do; needs no libm. The
// callers' build must not contract a*b+c to a fused operation
// (-ffp-contract=off), which the library cannot check. Where double arithmetic
// is done by a library it must be that of IEEE 754; libgcc's for Arm rounds
// some differences wrongly.
#pragma once

namespace orch::math {

/// e to the power of `x`, at most 1 ulp off; infinity above 88.72 (709.78 for
/// double), 0 below -103.97 (-745.13). NaN gives NaN.
float exp(float x);
double exp(double x);

/// Hyperbolic tangent of `x`, at most 1.5 ulp off. Keeps the sign of zero.
float tanh(float x);
double tanh(double x);

/// Error function of `x`, at most 1.6 ulp off. Keeps the sign of zero.
float erf(float x);
double erf(double x);

/// Sine and cosine of `x` radians, at most 1.6 ulp off, however large `x` is;
/// NaN for infinity. sin keeps the sign of zero.
float sin(float x);
double sin(double x);
float cos(float x);
double cos(double x);

/// Tangent of `x` radians, at most 1.5 ulp off, however large `x` is; NaN for
/// infinity. Keeps the sign of zero.
float tan(float x);
double tan(double x);

/// Square root of `x`, correctly rounded; NaN for negative numbers, -0 for -0.
float sqrt(float x);
double sqrt(double x);

/// Natural logarithm of `x`, of 1 + `x`, and logarithms to the bases 2 and 10,
/// at most 1 ulp off. Minus infinity for 0, NaN for negative numbers.
float log(float x);
double log(double x);
float log1p(float x);
double log1p(double x);
float log2(float x);
double log2(double x);
float log10(float x);
double log10(double x);

/// e to the power of `x`, less 1, at most 1.2 ulp off. Keeps the sign of zero.
float expm1(float x);
double expm1(double x);

/// `x` to the power of `y`, at most 1 ulp off, and exact where F holds the
/// result. Special values as in C (annex F): NaN for a negative `x` unless `y`
/// is whole, 1 for `y` = 0 and for `x` = 1.
float pow(float x, float y);
double pow(double x, double y);

/// Hyperbolic sine and cosine and their inverses, at most 1.2 ulp off. NaN for
/// acosh below 1 and atanh beyond 1.
float sinh(float x);
double sinh(double x);
float cosh(float x);
double cosh(double x);
float asinh(float x);
double asinh(double x);
float acosh(float x);
double acosh(double x);
float atanh(float x);
double atanh(double x);

/// Angles in radians, at most 1.2 ulp off. NaN for asin and acos beyond 1.
float asin(float x);
double asin(double x);
float acos(float x);
double acos(double x);
float atan(float x);
double atan(double x);

/// Angle in radians of the point (`x`, `y`), from -pi to pi, at most 1.5 ulp
/// off. The signs of zeros count, as in C (annex F).
float atan2(float y, float x);
double atan2(double y, double x);

}  // namespace orch::math
