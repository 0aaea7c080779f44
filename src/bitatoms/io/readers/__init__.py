"""One module per file format. Each has ``read(source, options)`` and ``write(table, path, format)``."""
