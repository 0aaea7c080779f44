"""Files: `api` reads and writes tables, `formats` lists the formats, `readers` has one module per format.

`model_file` and `patterns` write what was learned; `cells` converts cells to bits.
"""
