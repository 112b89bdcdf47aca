// Math functions for float; alone, so that programs without it do not pay for
// it.
#include "math_arc.h"
#include "math_area.h"
#include "math_erf.h"
#include "math_exp.h"
#include "math_lanes.h"
#include "math_log.h"
#include "math_power.h"
#include "math_sqrt.h"
#include "math_trig.h"

namespace orch::math {

float exp(float x) { return exp_of(x); }
float erf(float x) { return erf_of(x); }
float tanh(float x) { return tanh_of(x); }
float sqrt(float x) { return sqrt_of(x); }
float log(float x) { return log_of(x); }
float log2(float x) { return log2_of(x); }
float log10(float x) { return log10_of(x); }
float log1p(float x) { return log1p_of(x); }
float expm1(float x) { return expm1_of(x); }
float sinh(float x) { return sinh_of(x); }
float cosh(float x) { return cosh_of(x); }
float tan(float x) { return tan_of(x); }
float asin(float x) { return asin_of(x); }
float acos(float x) { return acos_of(x); }
float atan(float x) { return atan_of(x); }
float asinh(float x) { return asinh_of(x); }
float acosh(float x) { return acosh_of(x); }
float atanh(float x) { return atanh_of(x); }
float pow(float x, float y) { return pow_of(x, y); }
float atan2(float y, float x) { return atan2_of(y, x); }

// One copy of the code for both.
__attribute__((noinline)) static float trig(float x, unsigned quarters) {
  return trig_of(x, quarters);
}

float sin(float x) { return trig(x, 0); }
float cos(float x) { return trig(x, 1); }

}  // namespace orch::math
