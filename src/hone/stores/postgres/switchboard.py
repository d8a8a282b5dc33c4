"""Connect the servers on one PostgreSQL database: they leave rows for each other, and a signal says when to
look."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from hone.core.claims import claim_of
from hone.core.permissions import Answer
from hone.core.switchboard import Inbox, Post, TurnStart
from hone.stores.postgres.database import PostgresDatabase, PostgresStore, Rows
from hone.stores.postgres.signals import Signals

BEGIN = "SELECT mode, servers FROM begin_turn(%(owner)s, %(session)s, %(server)s)"
END = "SELECT end_turn(%(owner)s, %(session)s, %(server)s)"
BUSY = """
SELECT session FROM turns WHERE owner = %(owner)s
    AND hashtextextended(%(owner)s || ' conversation-' || session, 3) IN (SELECT held_claims())
ORDER BY session
"""
INTERRUPT = """
WITH asked AS (
    UPDATE turns SET interrupted = true WHERE owner = %(owner)s AND session = %(session)s
        AND is_held(%(owner)s, %(claim)s) RETURNING server
)
SELECT wake_servers(%(owner)s, server) FROM asked
"""
CHOOSE = """
WITH chosen AS (
    UPDATE sessions SET mode = %(mode)s WHERE owner = %(owner)s AND id = %(session)s RETURNING id
)
SELECT wake_servers(%(owner)s, server) FROM turns JOIN chosen ON id = session WHERE owner = %(owner)s
"""
TOLD = """
UPDATE sessions SET mode = NULL WHERE owner = %(owner)s AND id = %(session)s AND mode = %(mode)s
"""
CHOSEN = "SELECT mode FROM sessions WHERE owner = %(owner)s AND id = %(session)s"
ASK = """
INSERT INTO questions (owner, session, id, server) VALUES (%(owner)s, %(session)s, %(id)s, %(server)s)
ON CONFLICT DO NOTHING
"""
ANSWER = """
WITH answered AS (
    UPDATE questions SET choice = %(choice)s, reason = %(reason)s
    WHERE owner = %(owner)s AND session = %(session)s AND id = %(id)s AND choice IS NULL
        AND is_held(%(owner)s, 'server-' || server) RETURNING server
)
SELECT wake_servers(%(owner)s, server) FROM answered
"""
WITHDRAW = "DELETE FROM questions WHERE owner = %(owner)s AND session = %(session)s AND id = %(id)s"
UNLISTEN = """
DELETE FROM listeners
WHERE owner = %(owner)s AND server = %(server)s AND channel <> ALL (%(channels)s::text[])
"""
LISTEN = """
WITH added AS (
    INSERT INTO listeners (owner, channel, server)
    SELECT %(owner)s, each, %(server)s FROM unnest(%(channels)s::text[]) AS each
    ON CONFLICT DO NOTHING RETURNING channel
)
SELECT wake_servers(%(owner)s, '*') WHERE EXISTS (SELECT 1 FROM added)
"""
SEND = """
INSERT INTO posts (owner, server, channel, kind, data)
SELECT %(owner)s, each.* FROM unnest(
    %(servers)s::text[], %(channels)s::text[], %(kinds)s::text[], %(data)s::text[]
) AS each
"""
WAKE = "SELECT wake_servers(%(owner)s, each) FROM unnest(%(servers)s::text[]) AS each"
KEEP = "SELECT keep_turns(%(owner)s, %(server)s, %(turns)s::text[])"
ORDERS = """
SELECT session, interrupted, mode
FROM turns LEFT JOIN sessions AS s ON s.owner = turns.owner AND s.id = session
WHERE turns.owner = %(owner)s AND server = %(server)s AND (interrupted OR mode IS NOT NULL)
"""
CALM = "UPDATE turns SET interrupted = false WHERE owner = %(owner)s AND session = ANY (%(turns)s::text[])"
ANSWERS = """
SELECT session, id, choice, reason FROM questions
WHERE owner = %(owner)s AND server = %(server)s AND choice IS NOT NULL
"""
POSTS = """
WITH taken AS (
    DELETE FROM posts WHERE owner = %(owner)s AND server = %(server)s
    RETURNING id, server, channel, kind, data
)
SELECT server, channel, kind, data FROM taken ORDER BY id
"""
LISTENERS = """
SELECT channel, server FROM listeners AS l
WHERE owner = %(owner)s AND server <> %(server)s AND channel = ANY (%(channels)s::text[]) AND NOT EXISTS (
    SELECT 1 FROM turns AS t WHERE t.owner = l.owner AND t.session = l.channel AND t.server <> %(server)s
)
"""
TIDY = "SELECT forget_servers(%(owner)s)"


class PostgresSwitchboard(PostgresStore):
    """Close it before the pool. `signals` are those of the process, which all its owners share."""

    def __init__(self, database: PostgresDatabase, server: str, signals: Signals | None = None) -> None:
        super().__init__(database)
        self.server = server
        self._signals = signals or Signals(database.dial)
        self._subscription = self._signals.add(database.owner, server)

    async def begin(self, session: str) -> TurnStart:
        def perform(rows: Rows) -> TurnStart:
            mode, servers = rows.one(BEGIN, session=session, server=self.server) or (None, None)
            return TurnStart(mode or "", frozenset(servers or ()))

        return await self._database.call(perform, session)

    async def end(self, session: str) -> None:
        await self._do(END, session)

    async def busy(self) -> Sequence[str]:
        return await self._database.read(lambda rows: [session for (session,) in rows.execute(BUSY)])

    async def interrupt(self, session: str) -> bool:
        return await self._do(INTERRUPT, session, claim=claim_of(session))

    async def choose_mode(self, session: str, mode: str) -> None:
        await self._do(CHOOSE, session, mode=mode)

    async def note_told(self, session: str, mode: str) -> None:
        await self._do(TOLD, session, mode=mode)

    async def chosen_mode(self, session: str) -> str:
        return await self._database.read(lambda rows: rows.value(CHOSEN, session=session) or "")

    async def ask(self, session: str, question: str) -> None:
        await self._do(ASK, session, id=question)

    async def answer(self, session: str, question: str, answer: Answer) -> bool:
        said: dict[str, str] = {"choice": answer.choice, "reason": answer.reason}
        return await self._do(ANSWER, session, id=question, **said)

    async def withdraw(self, session: str, question: str) -> None:
        await self._do(WITHDRAW, session, id=question)

    async def _do(self, query: str, session: str, **values: Any) -> bool:
        """Perform one statement, and tell whether it found a row."""

        def perform(rows: Rows) -> bool:
            return rows.execute(query, session=session, server=self.server, **values).rowcount > 0

        return await self._database.call(perform, session)

    async def listen(self, channels: Collection[str]) -> None:
        def perform(rows: Rows) -> None:
            known = {"server": self.server, "channels": list(channels)}
            rows.execute(UNLISTEN, **known)
            rows.execute(LISTEN, **known)

        await self._database.call(perform)

    async def send(self, posts: Sequence[Post]) -> None:
        def perform(rows: Rows) -> None:
            with rows.transaction():
                rows.execute(
                    SEND,
                    servers=[each.server for each in posts],
                    channels=[each.channel for each in posts],
                    kinds=[each.kind for each in posts],
                    data=[each.data for each in posts],
                )
                rows.execute(WAKE, servers=sorted({each.server for each in posts}))

        await self._database.call(perform)

    async def receive(self, turns: Collection[str], channels: Collection[str]) -> Inbox:
        own = {"server": self.server}

        def perform(rows: Rows) -> Inbox:
            if turns:
                rows.execute(KEEP, turns=list(turns), **own)
            orders = rows.execute(ORDERS, **own).fetchall()
            interrupted = [session for session, is_asked, _ in orders if is_asked]
            if interrupted:
                rows.execute(CALM, turns=interrupted)
            answers = rows.execute(ANSWERS, **own).fetchall()
            posts = rows.execute(POSTS, **own).fetchall()
            listeners: defaultdict[str, set[str]] = defaultdict(set)
            for channel, server in rows.pairs(LISTENERS, channels=list(channels), **own):
                listeners[channel].add(server)
            return Inbox(
                interrupted,
                {session: mode for session, _, mode in orders if mode},
                [(session, id, Answer(choice, reason or "")) for session, id, choice, reason in answers],
                [Post(*each) for each in posts],
                {channel: frozenset(servers) for channel, servers in listeners.items()},
            )

        return await self._database.call(perform)

    async def tidy(self) -> None:
        await self._database.call(lambda rows: rows.execute(TIDY))

    async def stir(self, seconds: float) -> None:
        await self._signals.wait(self._subscription, seconds)

    def wake(self) -> None:
        self._subscription.stirred.set()

    async def close(self) -> None:
        self._signals.remove(self._subscription)
