"""Running a built product: calls in, compared results out; all but the process.

`orchestrator run` reads `product.json` (product), turns the command line or a scenario
into calls (inputs, scenario), writes the request and reads the response of the firmware
(protocol), compares (compare) and says what came out (report, outputs).
"""
