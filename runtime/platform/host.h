// How the runner reaches the host that started it: by semihosting or over a
// UART. Implemented once in each of these folders; start-up code calls it.
#pragma once

namespace orch::host {

/// Exit code after a hardware fault.
inline constexpr int kFaultExitCode = 99;

/// Runs the application on what the host asks for.
int run_application();

/// Reports the exit code to the host. Start-up code also calls it after a
/// fault, when the stack cannot be used.
[[noreturn]] void exit(int code);

}  // namespace orch::host
