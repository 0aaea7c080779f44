"""Clusters for the tests: started here, and by hand with Dask's command line."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager

from distributed import Client, LocalCluster


@contextmanager
def local_cluster(n_workers, **how):
    """A client of a cluster on this machine, each worker with one thread and in a process of its own."""
    how = {"threads_per_worker": 1, "dashboard_address": ":0", **how}
    with LocalCluster(n_workers=n_workers, **how) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def cluster_by_hand(folder, n_workers):
    """A client of a scheduler and workers that were started with the command line."""
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
    """End a worker's process at once; its number."""
    (pid,) = client.run(os.getpid, workers=[worker]).values()
    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    return pid
