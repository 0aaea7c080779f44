"""Sizes of what is read at a time, and limits of what is believed of a file, in one table.

A module imports what it needs by name, so that a test can change it there.
"""

from __future__ import annotations

# What is read, converted or written together.
CHUNK_BITS = 1 << 23  # cells of a chunk of rows: 1 MiB packed, 8 MiB unpacked
CHUNK_ENTRIES = 1 << 18  # entries of a sparse table or items of lists; each takes about fifty bytes until it is a bit
CHUNK_BYTES = 1 << 20  # of text
SPOOL_BYTES = 1 << 24  # of entries in memory until the size of a table is known; more are written to a temporary file
MAX_CHUNK_ROWS = 1 << 14  # of a table of categories
CHUNK_GENOTYPES = 1 << 20  # each takes up to twenty bytes until it is one or two bits
MAX_ARROW_COLUMNS = 1 << 10  # each keeps a part of the file in memory

# Lines and rows from which it is detected what a text file contains.
SEPARATOR_LINES = 10
TABLE_ROWS = 100  # header and row names of a table of ones and zeros; width of a sheet
HEAD_ROWS = 1000  # header of other tables; long tables and lists of items
MAX_LISTED_CELLS = 1000  # per row: with more, a file is a table of ones and zeros

# What a text file may contain.
LONGEST_LINE = 1 << 28  # bytes
LONGEST_NUMBER_LINE = 1 << 26  # bytes; parsing a line of numbers takes about ten times as many
FREE_LINE = 1 << 22  # bytes that a line may have however small the file is
MAX_TEXT_COMPRESSION = 100  # real text compresses less; the cells of a line take many times its length
MAX_BLANK_ROWS = 1000  # of a sheet in succession; what follows more of them is hardly part of the table
MAX_CATEGORIES = 100_000  # distinct texts of a column

# What a sheet may contain.
MAX_SHEET_ROWS, MAX_SHEET_COLUMNS = 1 << 20, 1 << 14  # by Excel's limits
LONGEST_SHEET_TEXT = (1 << 15) - 1  # characters of a cell; openpyxl would cut off the rest
MAX_SHEET_COMPRESSION = 200  # bytes per compressed byte; sheets of zeros reach 100
FREE_SHEET_PART = 1 << 24  # bytes that a part of the file may have in any case

# What a table, or an array in a file, may claim.
FREE_TABLE_BYTES = 1 << 30  # whatever the size of the file: few ones can be in any number of zeros
MAX_TABLE_EXPANSION = 100_000  # bytes of a table per byte of its file; lists of items reach 1000
MAX_DEFLATE_EXPANSION = 1100  # bytes per byte compressed by deflate, which expands one to at most 1032
MAX_ARRAY_CHUNK = 1 << 30  # bytes; libraries hold one decompressed chunk in memory
LONGEST_MATRIX_HEADER = 1 << 20  # bytes of a line; parsed JSON takes many times its length
LONGEST_IMAGE_HEADER = 1 << 16  # bytes
