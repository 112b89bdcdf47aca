// The error function, once for float and double.
#pragma once

#include "float_format.h"
#include "orch/math.h"

namespace orch::math {

/// Constants of one format. The coefficients come from interpolation at
/// Chebyshev nodes, computed with 300 bits.
template <typename F>
struct ErfConstants;

template <>
struct ErfConstants<float> {
  /// (erf(x) / x - 1) for z = x * x, |x| <= 1.
  template <typename V>
  static V small(V z) {
    return 0.128379165848F +
           z * (-0.376126266667F +
                z * (0.112835947152F +
                     z * (-0.0268542120106F +
                          z * (0.00518908742343F +
                               z * (-0.000801686428717F +
                                    z * 0.0000787587506269F)))));
  }
  static constexpr float kCenter = 0.25F;
  /// e^(x * x) * (1 - erf(x)) for t = 1 / (x + 2) - kCenter, 1 <= x <= 4.
  template <typename V>
  static V tail(V t) {
    return 0.25539564033F +
           t * (1.70874355315F +
                t * (3.86662440099F +
                     t * (5.0542049468F +
                          t * (0.919723699375F + t * -7.00146359049F))));
  }
};

template <>
struct ErfConstants<double> {
  static double small(double z) {
    constexpr double kTerms[] = {
        -7.7958988270021422416e-10,  1.3720064546777685604e-8,
        -1.6208483801871705902e-7,   1.644742470331736241e-6,
        -0.000014924736907419660338, 0.00012055294904839707917,
        -0.00085483259753896920806,  0.0052239776071164227321,
        -0.02686617064323777036,     0.11283791670945006266,
        -0.37612638903183540438,     0.12837916709551256654,
    };
    double sum = 0;
    for (const double term : kTerms) sum = sum * z + term;
    return sum;
  }
  static constexpr double kCenter = 0.234375;
  /// The same for 1 <= x <= 6.
  static double tail(double t) {
    constexpr double kTerms[] = {
        1051.4775993545124307,  -352.15846705801182424, -187.84231022637839368,
        156.42775064681800607,  5.343269982798526542,   -48.473920711072128409,
        9.5197691582480331622,  15.319409309670622079,  -5.1951342955919361769,
        -6.7585707472615170177, 1.5005795240813347226,  4.977707342659357725,
        3.6312651223836863108,  1.5915997174746599509,  0.22962131986684041052,
    };
    double sum = 0;
    for (const double term : kTerms) sum = sum * t + term;
    return sum;
  }
};

/// Up to 1 a polynomial; above it 1 - e^(-x * x) * tail, where what is taken
/// away is so small that its errors do not show.
template <typename F>
F erf_of(F x) {
  using C = ErfConstants<F>;
  const typename Format<F>::Bits sign = to_bits(x) & kSignBit<F>;
  const F a = from_bits<F>(to_bits(x) ^ sign);
  F y;
  if (a < 1) {
    y = a + a * C::small(a * a);
  } else {
    y = 1 - exp(-(a * a)) * C::tail(1 / (a + 2) - C::kCenter);
  }
  return from_bits<F>(to_bits(y) | sign);
}

}  // namespace orch::math
