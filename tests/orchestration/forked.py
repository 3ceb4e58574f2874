"""Processes of tests that need not import everything: they are forked from one that has, and does nothing else."""

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.orchestration.killed_run"])
