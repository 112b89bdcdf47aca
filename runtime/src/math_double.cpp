// Math functions for double; alone, so that programs without it do not pay for
// it.
#include "math_arc.h"
#include "math_area.h"
#include "math_erf.h"
#include "math_exp.h"
#include "math_log.h"
#include "math_power.h"
#include "math_sqrt.h"
#include "math_trig.h"

namespace orch::math {

double exp(double x) { return exp_of(x); }
double erf(double x) { return erf_of(x); }
double tanh(double x) { return tanh_of(x); }
double sqrt(double x) { return sqrt_of(x); }
double log(double x) { return log_of(x); }
double log2(double x) { return log2_of(x); }
double log10(double x) { return log10_of(x); }
double log1p(double x) { return log1p_of(x); }
double expm1(double x) { return expm1_of(x); }
double sinh(double x) { return sinh_of(x); }
double cosh(double x) { return cosh_of(x); }
double tan(double x) { return tan_of(x); }
double asin(double x) { return asin_of(x); }
double acos(double x) { return acos_of(x); }
double atan(double x) { return atan_of(x); }
double asinh(double x) { return asinh_of(x); }
double acosh(double x) { return acosh_of(x); }
double atanh(double x) { return atanh_of(x); }
double pow(double x, double y) { return pow_of(x, y); }
double atan2(double y, double x) { return atan2_of(y, x); }

// One copy of the code for both.
__attribute__((noinline)) static double trig(double x, unsigned quarters) {
  return trig_of(x, quarters);
}

double sin(double x) { return trig(x, 0); }
double cos(double x) { return trig(x, 1); }

}  // namespace orch::math
