// Math functions for double; alone, so that programs without it do not pay for
// it.
#include "math_erf.h"
#include "math_exp.h"
#include "math_sqrt.h"
#include "math_trig.h"

namespace orch::math {

double exp(double x) { return exp_of(x); }
double erf(double x) { return erf_of(x); }
double tanh(double x) { return tanh_of(x); }
double sqrt(double x) { return sqrt_of(x); }

// One copy of the code for both.
__attribute__((noinline)) static double trig(double x, unsigned quarters) {
  return trig_of(x, quarters);
}

double sin(double x) { return trig(x, 0); }
double cos(double x) { return trig(x, 1); }

}  // namespace orch::math
