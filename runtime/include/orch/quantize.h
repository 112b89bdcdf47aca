/* Floats as the quantized numbers of a model, and back, for C and C++.
 *
 * The numbers are bit for bit those that the kernels of the library compute
 * from the same floats: applications quantize inputs that the profile has as
 * int8 or uint8, and generated headers have a function for each of them.
 */
#ifndef ORCH_QUANTIZE_H_
#define ORCH_QUANTIZE_H_

#include <stdint.h>

/* A number as another type. */
#ifdef __cplusplus
#define ORCH_AS(type, value) static_cast<type>(value)
#else
#define ORCH_AS(type, value) ((type)(value))
#endif

/* The number for a float: rounded to the nearest, ties to even, and at least
 * `low` and at most `high`; NaN gives `low`. */
static inline int32_t orch_quantize(float value, float scale,
                                    int32_t zero_point, int32_t low,
                                    int32_t high) {
  /* Limited before it is rounded, so that every float has an integer. */
  const float least = ORCH_AS(float, low - zero_point);
  const float most = ORCH_AS(float, high - zero_point);
  float scaled = value * (1.0f / scale);
  int32_t whole;
  float rest;
  scaled = scaled > least ? scaled : least;
  scaled = scaled < most ? scaled : most;
  whole = ORCH_AS(int32_t, scaled); /* towards 0 */
  rest = scaled - ORCH_AS(float, whole);
  if (rest > 0.5f || (rest >= 0.5f && (whole & 1) != 0)) ++whole;
  if (rest < -0.5f || (rest <= -0.5f && (whole & 1) != 0)) --whole;
  return whole + zero_point;
}

/* The float that a number stands for. */
static inline float orch_dequantize(int32_t number, float scale,
                                    int32_t zero_point) {
  return ORCH_AS(float, number - zero_point) * scale;
}

#endif /* ORCH_QUANTIZE_H_ */
