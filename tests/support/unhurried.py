"""Lets a short script end in peace. Python imports this at every start in the environment of the tests.

A thread of pyarrow may hold on to what it read for a moment longer than the call that read it. Where the
interpreter ends within that moment, the thread asks for the lock of a Python that is no more, and the process
is aborted although everything was printed (apache/arrow, 34314 and 33975): on a busy machine that was one
script in a hundred, and one in ten of those whose modules were loaded already.
"""

import atexit
import sys
import time


@atexit.register
def wait_for_readers():
    if "pyarrow" in sys.modules:
        time.sleep(0.5)
