"""Computing on a CUDA device. Nothing here is imported before a device is asked for."""
