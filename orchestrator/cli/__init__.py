"""The command line: arguments in, one command run, results and an exit code out.

Results go to stdout; progress and errors go to stderr. Commands read files and call
`build` and the topics below it; nothing below uses the console.
"""
