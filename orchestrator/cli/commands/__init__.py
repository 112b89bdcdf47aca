"""One module per command, each with `run(args, console) -> ExitCode`."""
