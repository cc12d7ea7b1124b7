"""The side of pgqueuer in `benchmarks.engine`; runs in an interpreter in which pgqueuer and asyncpg are installed."""

import asyncio
import sys
import time
from datetime import timedelta

_BATCH = 500


async def put(address: str, jobs: int) -> None:
    """Make its tables, enqueue the jobs, and print how many a second."""
    import asyncpg  # type: ignore[import-not-found]  # noqa: PLC0415 - only of the peer's interpreter
    from pgqueuer.queries import Queries  # type: ignore[import-not-found]  # noqa: PLC0415 - the same

    queries = Queries.from_asyncpg_connection(await asyncpg.connect(address))
    await queries.install()
    began = time.perf_counter()
    for start in range(0, jobs, 1000):
        count = min(1000, jobs - start)
        await queries.enqueue(["nothing"] * count, [b"1"] * count, [0] * count)
    print(jobs / (time.perf_counter() - began))


async def work(address: str, jobs: int) -> None:
    """Drain when told; print how many this worker ran."""
    import asyncpg  # noqa: PLC0415 - only of the peer's interpreter
    from pgqueuer import PgQueuer  # type: ignore[import-not-found]  # noqa: PLC0415 - the same
    from pgqueuer.types import QueueExecutionMode  # type: ignore[import-not-found]  # noqa: PLC0415 - the same

    peer = PgQueuer.from_asyncpg_connection(await asyncpg.connect(address))
    count = 0

    @peer.entrypoint("nothing")  # type: ignore[untyped-decorator]  # it comes without types here
    async def nothing(_job: object) -> None:
        nonlocal count
        count += 1

    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await peer.qm.run(dequeue_timeout=timedelta(0), batch_size=_BATCH, mode=QueueExecutionMode.drain)
    print(min(count, jobs), flush=True)


if __name__ == "__main__":
    what, where, number = sys.argv[1:4]
    asyncio.run({"put": put, "work": work}[what](where, int(number)))
