"""Functions that block run in threads, and their results come back together."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from hone.core.threads import in_thread, run_by

NAME: ContextVar[str] = ContextVar("name", default="nobody")


async def test_a_function_runs_elsewhere_with_the_callers_context_and_arguments() -> None:
    NAME.set("owner")

    def tell(first: int, *, second: int) -> tuple[str, int, bool]:
        return NAME.get(), first + second, threading.current_thread() is threading.main_thread()

    assert await in_thread(tell, 1, second=2) == ("owner", 3, False)


@pytest.mark.parametrize(
    ("raised", "met"), [(ValueError, ValueError), (StopIteration, RuntimeError), (SystemExit, SystemExit)]
)
async def test_what_a_function_raises_is_raised_where_its_caller_waits(
    raised: type[BaseException], met: type[BaseException]
) -> None:
    def fail() -> None:
        raise raised

    with pytest.raises(met):
        await in_thread(fail)


async def test_work_is_done_although_its_caller_is_cancelled() -> None:
    begun, released, done = (threading.Event() for _ in range(3))

    def work() -> None:
        begun.set()
        released.wait(60)
        done.set()

    caller = asyncio.create_task(in_thread(work))
    await in_thread(begun.wait, 60)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    released.set()
    assert await in_thread(done.wait, 60)


async def test_results_that_come_while_the_loop_is_busy_wake_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, woken = asyncio.get_running_loop(), list[object]()
    wake = loop.call_soon_threadsafe

    def count(*work: Any) -> asyncio.Handle:
        woken.append(work)
        return wake(*work)

    with ThreadPoolExecutor(4) as threads:
        calls = [asyncio.create_task(run_by(threads, partial(int, number))) for number in range(20)]
        monkeypatch.setattr(loop, "call_soon_threadsafe", count)
        await asyncio.sleep(0)
        threads.shutdown()  # keeps the loop busy until all is done
    assert await asyncio.gather(*calls) == list(range(20))
    assert len(woken) == 1


def test_a_forked_process_has_threads_of_its_own() -> None:
    code = (
        "import asyncio, os\n"
        "from hone.core.threads import in_thread\n"
        "asyncio.run(in_thread(int))\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    asyncio.run(in_thread(int))\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
    assert ended.stdout == b"7\n"
