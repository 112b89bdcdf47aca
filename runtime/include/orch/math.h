// Float math that gives the same bits on every target and compiler.
//
// Built from + - * / and integer operations only; needs no libm. The callers'
// build must not contract a*b+c to a fused operation (-ffp-contract=off), which
// the library cannot check. Where double arithmetic is done by a library it
// must be that of IEEE 754; libgcc's for Arm rounds some differences wrongly.
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

/// Square root of `x`, correctly rounded; NaN for negative numbers, -0 for -0.
float sqrt(float x);
double sqrt(double x);

}  // namespace orch::math
