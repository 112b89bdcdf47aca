// Semihosting: files, console and exit through the debugger or emulator.
// Sources: Arm, Semihosting for AArch32 and AArch64, release 2.0; RISC-V
// Semihosting 0.4.
#pragma once

#include <stdint.h>

namespace orch::semihosting {

/// Exit code after a hardware fault.
inline constexpr int kFaultExitCode = 99;

/// Runs the application with the two paths of the command line.
int run_application();

[[noreturn]] void exit(int code);

}  // namespace orch::semihosting
