"""Where rows live (memory, a Zarr store, a Dask cluster), and passes over them."""
