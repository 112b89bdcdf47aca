// Which instructions the kernels of this build may use.
#pragma once

#include "orch/favour.h"

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

// Whether a word may lie at any address. Products can make that a fault, and
// some cores have it no other way.
#if defined(__arm__) && !defined(__ARM_FEATURE_UNALIGNED)
#define ORCH_UNALIGNED 0
#else
#define ORCH_UNALIGNED 1
#endif

// Vectors of floats: a core may have MVE for integers alone.
#if ORCH_ISA == ORCH_ISA_MVE && (__ARM_FEATURE_MVE & 2) != 0
#define ORCH_FLOAT_VECTORS 1
#else
#define ORCH_FLOAT_VECTORS 0
#endif

// Floats in registers of an FPU, but no vectors: assembly for these.
#if defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4) != 0 && \
    !ORCH_FLOAT_VECTORS
#define ORCH_FLOAT_REGISTERS 1
#else
#define ORCH_FLOAT_REGISTERS 0
#endif

// Loops that most of the time is spent in. At -Os, gcc leaves the test of a
// loop at its top and what it could keep in registers in memory.
#if defined(__GNUC__) && !defined(__clang__)
#define ORCH_HOT __attribute__((noinline, optimize("O2")))
#else
#define ORCH_HOT __attribute__((noinline))
#endif

// In front of a loop that mostly has few rounds: at -O2 clang would make it
// four times as long, and begin with what a multiple of four leaves over.
#if defined(__clang__)
#define ORCH_FEW_ROUNDS _Pragma("clang loop unroll(disable)")
#else
#define ORCH_FEW_ROUNDS
#endif

#define ORCH_ALWAYS_INLINE inline __attribute__((always_inline))
