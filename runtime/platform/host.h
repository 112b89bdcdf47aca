// How the runner reaches the host that started it: by semihosting or over a
// UART. Implemented once in each of these folders; start-up code calls it.
#pragma once

namespace orch::host {

/// Exit code after a hardware fault.
inline constexpr int kFaultExitCode = 99;

/// Runs the application on what the host asks for.
int run_application();

/// Tells the host how the application ended. Called without a stack that works
/// after a fault.
[[noreturn]] void exit(int code);

}  // namespace orch::host
