// Math functions for double; alone, so that programs without it do not pay for
// it.
#include "math_exp.h"
#include "math_sqrt.h"

namespace orch::math {

double exp(double x) { return exp_of(x); }
double tanh(double x) { return tanh_of(x); }
double sqrt(double x) { return sqrt_of(x); }

}  // namespace orch::math
