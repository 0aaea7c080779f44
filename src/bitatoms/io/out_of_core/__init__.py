"""Cells that are not stored row by row, such as entries of sparse matrices, put into the order of rows."""
