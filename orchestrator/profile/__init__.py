"""The profile: one TOML file per product, checked at the edge.

In: the texts of a profile and of its base. Out: one frozen `Profile`, whose
tables the rest of the program uses, with the line of every value. `load` reads
a `document` with lines, validates each value with `tables`, then runs the rules
over several values, which are beside the tables.
`choices` and `source_map` are without pydantic, so that commands without a profile do
not pay for it.
"""
