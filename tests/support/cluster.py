"""Dask clusters for the tests: local ones, and ones started with Dask's command line."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager

from distributed import Client, LocalCluster


@contextmanager
def local_cluster(n_workers, **options):
    """Yield a client of a cluster on this machine; each worker is a process with one thread."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", **options}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def command_line_cluster(folder, n_workers):
    """Yield a client of a scheduler and workers that were started with Dask's command line."""
    file = folder / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    worker = ["worker", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder), *common]
    commands = [["scheduler", "--port", "0", "--host", "127.0.0.1", *common], *[worker] * n_workers]
    with ExitStack() as stack:
        for command in commands:
            process = stack.enter_context(
                subprocess.Popen([sys.executable, "-m", "dask", *command], stderr=subprocess.DEVNULL)
            )
            stack.callback(process.kill)
        client = stack.enter_context(Client(scheduler_file=str(file), set_as_default=False))
        client.wait_for_workers(n_workers)
        yield client


def kill(client, worker):
    """Kill the process of a worker and return its id."""
    (pid,) = client.run(os.getpid, workers=[worker]).values()
    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    return pid
