"""Files in the format of the MNIST distribution."""


def idx(pictures):
    """Return the contents of an IDX file of pictures."""
    sizes = b"".join(size.to_bytes(4, "big") for size in pictures.shape)
    return bytes([0, 0, 8, 3]) + sizes + pictures.tobytes()
