"""Where the rows are when they are not one table in memory: in a store on disk, or on a Dask cluster."""
