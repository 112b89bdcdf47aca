// Math functions for float; alone, so that programs without it do not pay for
// it.
#include "math_erf.h"
#include "math_exp.h"
#include "math_sqrt.h"
#include "math_trig.h"

namespace orch::math {

float exp(float x) { return exp_of(x); }
float erf(float x) { return erf_of(x); }
float tanh(float x) { return tanh_of(x); }
float sqrt(float x) { return sqrt_of(x); }

// One copy of the code for both.
__attribute__((noinline)) static float trig(float x, unsigned quarters) {
  return trig_of(x, quarters);
}

float sin(float x) { return trig(x, 0); }
float cos(float x) { return trig(x, 1); }

}  // namespace orch::math
