"""Files: `api` reads and writes tables, `formats` has a registry and one module per format.

`model_file` and `patterns` write what was learned; `cells` converts cells to bits.
"""
