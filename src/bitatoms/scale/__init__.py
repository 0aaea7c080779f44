"""Deprecated: this package moved. `bitatoms.scale.dask` is now `bitatoms.dask`."""
