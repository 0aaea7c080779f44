"""Files in and out. `tables.py` has ``read`` and ``write``, `formats.py` lists the formats, each family of which has a
module with a ``read`` and a ``write`` of its own; `modelfile.py` and `patterns.py` write what was learned."""
