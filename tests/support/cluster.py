"""Dask clusters on this machine for the tests."""

import multiprocessing
import os
import signal
import tempfile
from contextlib import ExitStack, contextmanager
from functools import cache
from multiprocessing import forkserver
from multiprocessing.util import get_temp_dir
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context


@contextmanager
def local_cluster(n_workers, **options):
    """Yield a client of a cluster on this machine; each worker is a process with one thread, unless options differ."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", **options}
    can_fork = "forkserver" in multiprocessing.get_all_start_methods()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())  # Dask leaves its locks there
        start_method = "forkserver" if can_fork else "spawn"
        stack.enter_context(
            dask.config.set({"distributed.worker.multiprocessing-method": start_method, "temporary-directory": folder})
        )
        if can_fork and options.get("processes", True):
            _start_server()
        cluster = stack.enter_context(LocalCluster(n_workers=n_workers, **options))
        yield stack.enter_context(Client(cluster, set_as_default=False))


@cache
def _start_server():
    """Start a process that loads Dask, the library and its kernels once; workers are forked from it."""
    get_mp_context()  # sets what Dask loads
    multiprocessing.set_forkserver_preload(["distributed", "support.loaded_kernels"])
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TMPDIR", raising=False)
        patch.setattr(tempfile, "tempdir", None)
        get_temp_dir()  # of its socket, until this process ends: not in the folder for temporary files of the tests
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        forkserver.ensure_running()


def kill(client, worker):
    """Kill the process of a worker and return its id."""
    (pid,) = client.run(os.getpid, workers=[worker]).values()
    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    return pid
