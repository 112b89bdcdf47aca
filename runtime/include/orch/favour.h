// What a product favours where speed costs flash.
#pragma once

// The build says what the profile's `optimize` asks for, and chooses kernels
// accordingly: other compilers' flags cannot change it. What is compiled
// without it follows the compiler.
#ifndef ORCH_FAVOUR_SPEED
#ifdef __OPTIMIZE_SIZE__
#define ORCH_FAVOUR_SPEED 0
#else
#define ORCH_FAVOUR_SPEED 1
#endif
#endif
