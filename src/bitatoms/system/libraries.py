"""The libraries that bitatoms imports: which it requires, and which extra installs each of the others."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Library(NamedTuple):
    """A library: the name to install it by, and the extra of bitatoms that does; None if bitatoms requires it."""

    distribution: str
    extra: str | None = None


LIBRARIES = {  # by the name of the module
    "numpy": Library("numpy"),
    "scipy": Library("scipy"),
    "numba": Library("numba"),
    "sklearn": Library("scikit-learn"),
    "joblib": Library("joblib"),
    "anndata": Library("anndata", "anndata"),
    "bed_reader": Library("bed-reader", "plink"),
    "click": Library("click", "cli"),
    "cyvcf2": Library("cyvcf2", "vcf"),
    "dask": Library("dask", "dask"),
    "distributed": Library("distributed", "dask"),
    "h5py": Library("h5py", "anndata"),  # anndata requires it
    "matplotlib": Library("matplotlib", "plot"),
    "openpyxl": Library("openpyxl", "xlsx"),
    "pandas": Library("pandas", "pandas"),
    "pgenlib": Library("pgenlib", "pgen"),
    "PIL": Library("pillow", "image"),
    "pyarrow": Library("pyarrow", "arrow"),
    "rich": Library("rich", "cli"),
    "zarr": Library("zarr", "zarr"),
}


class MissingLibrary(ImportError):
    """A library is not installed; the message names what installs it."""


def missing_library(purpose: str, module: str) -> MissingLibrary:
    """Return the error for a purpose, such as "figures need", whose library is not installed."""
    return MissingLibrary(f"{purpose} {LIBRARIES[module].distribution}; install it with {pip_command(module)}")


def pip_command(*modules: str) -> str:
    """Return the command that installs libraries, or bitatoms with all that it requires."""
    extras = {LIBRARIES[module].extra for module in modules} - {None}
    return f'pip install "bitatoms[{",".join(sorted(map(str, extras)))}]"' if extras else "pip install bitatoms"


def import_library(module: str, purpose: str) -> Any:
    """Import an optional library.

    Parameters
    ----------
    module : str
        A name in `LIBRARIES`, or that of one of its submodules.
    purpose : str
        What is not possible without it, as in "figures need".

    Raises
    ------
    MissingLibrary
        It is not installed. A library that is installed and cannot be imported raises its own error.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        library = module.partition(".")[0]
        if error.name not in (library, module):
            raise
        raise missing_library(purpose, library) from error


def explained(error: BaseException) -> MissingLibrary | None:
    """Return the error that names what installs a library, if it is one of `LIBRARIES` that was not found."""
    if not isinstance(error, ModuleNotFoundError) or error.name not in LIBRARIES:
        return None
    return missing_library("bitatoms needs" if LIBRARIES[error.name].extra is None else "this needs", error.name)
