// Math functions for float; alone, so that programs without it do not pay for
// it.
#include "math_exp.h"
#include "math_sqrt.h"

namespace orch::math {

float exp(float x) { return exp_of(x); }
float tanh(float x) { return tanh_of(x); }
float sqrt(float x) { return sqrt_of(x); }

}  // namespace orch::math
