// Which instructions the kernels of this build may use.
#pragma once

#define ORCH_ISA_SCALAR 0
#define ORCH_ISA_DSP 1
#define ORCH_ISA_MVE 2

// The build says what the profile's target has; what is compiled without it
// follows the compiler.
#ifndef ORCH_ISA
#if defined(__ARM_FEATURE_MVE)
#define ORCH_ISA ORCH_ISA_MVE
#elif defined(__ARM_FEATURE_DSP)
#define ORCH_ISA ORCH_ISA_DSP
#else
#define ORCH_ISA ORCH_ISA_SCALAR
#endif
#endif

#define ORCH_ALWAYS_INLINE inline __attribute__((always_inline))
