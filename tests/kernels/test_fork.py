"""A process that is forked while another thread compiles a kernel can compile kernels itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

CODE = """
import os, signal, threading, warnings
import numpy as np
from headrace.kernels import compile as compiling
from headrace.kernels.compile import kernel

warnings.simplefilter("ignore")  # that a process with threads is forked is the point
entered, go_on = threading.Event(), threading.Event()

class Held(compiling.Kernel):
    def _load(self, signature):
        entered.set()
        assert go_on.wait(60)
        return super()._load(signature)

def double(x):
    return 2 * x

@kernel
def triple(x):
    return 3 * x

held = Held(double)
compiler = threading.Thread(target=held, args=(4,))
compiler.start()
assert entered.wait(60)
threading.Timer(0.5, go_on.set).start()
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends a child that waits for ever
    good = held(5) == 10 and triple(5) == 15
    os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
compiler.join()
assert held(6) == 12 and triple(6) == 18
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_waits_for_a_kernel_that_is_being_compiled(tmp_path) -> None:
    script = tmp_path / "forking.py"
    script.write_text(CODE)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"], (
        f"the child ended with {done.stdout}, -{int(signal.SIGALRM)} is a hang"
    )
