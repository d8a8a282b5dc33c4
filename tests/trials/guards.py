"""The guards, each with one way to disable it and the tests that should notice.

`old` stands exactly once in the file; a change of that line has to come here too, and a test says so.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    guard: str
    what: str
    """What is done to it, for the table."""
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def of(guard: str, what: str, file: str, old: str, new: str, *tests: str) -> Mutation:
    return Mutation(guard, what, file, old, new, tests)


DISK, LOOP, DOOR = "knowledge/disk.py", "loop.py", "web/door.py"
DISK_TESTS, DOOR_TESTS = "tests/knowledge/test_disk.py", "tests/web/test_door.py"

MUTATIONS = (
    of(
        "permit",
        "every call is allowed",
        "core/agent.py",
        "return self.permit.allows(tool.surface.effects_of(call), readonly=tool.surface.readonly)",
        "return True",
        "tests/wire/test_fork.py",
        "tests/test_loop.py",
    ),
    of(
        "permit: narrowing",
        "two permits together allow what either does",
        "core/permit.py",
        "self.effects & other.effects,",
        "self.effects | other.effects,",
        "tests/laws/test_values.py",
    ),
    of(
        "permit: nobody is there",
        "a narrowed agent may ask although nobody is there",
        "core/permit.py",
        "self.attended and other.attended",
        "self.attended or other.attended",
        "tests/laws/test_values.py",
    ),
    of(
        "a gate that raises denies",
        "a check that raises lets the call run",
        LOOP,
        'return refused(f"{call.name} was refused: {type(error).__name__} while it was checked or run")',
        "return await tool.run(call, scene)",
        "tests/test_loop.py::test_a_gate_that_raises_denies",
        "tests/story/test_gates.py",
    ),
    of(
        "trust rule: evidence",
        "what rests on foreign text is active",
        "policy/admission.py",
        "each.trust for each in author.evidence))) >= Trust.LOCAL",
        "each.trust for each in author.evidence))) >= Trust.FOREIGN",
        "tests/story/test_poisoning.py",
    ),
    of(
        "trust rule: after the network",
        "a result keeps its label although the network was reached",
        "core/provenance.py",
        "return Trust.FOREIGN if spoiled else best",
        "return best",
        "tests/story/test_poisoning.py",
        "tests/test_loop.py",
    ),
    of(
        "trust rule: the model's words",
        "they count as the agent's own whatever it has read",
        LOOP,
        "return min(Trust.AGENT, self.transcript.trust)",
        "return Trust.AGENT",
        "tests/test_loop.py",
        "tests/story/test_poisoning.py",
    ),
    of(
        "evidence: it must be there",
        "words that nobody said count as the first message",
        "policy/evidence.py",
        "    words = one_line(claim, 120)\n    raise Refused(",
        '    if nodes:\n        return 1, ""\n    words = one_line(claim, 120)\n    raise Refused(',
        "tests/policy/test_evidence.py",
    ),
    of(
        "evidence: something must be named",
        "a change that rests on nothing is judged like others",
        "policy/admission.py",
        "if not author.evidence:",
        "if False:",
        "tests/policy/test_admission.py",
    ),
    of(
        "quotes",
        "every entry counts as the owner's words",
        "policy/admission.py",
        "author.quotes and all(quoted(entry, author.quotes) for entry in entries)",
        "author.quotes",
        "tests/policy/test_admission.py",
        "tests/story/test_poisoning.py",
    ),
    of(
        "what waits has no effect",
        "a pending change is applied like an active one",
        "stores/record.py",
        "    if change.standing is Standing.ACTIVE:\n        fold.apply",
        "    if True:\n        fold.apply",
        "tests/contract/test_ledger.py",
    ),
    of(
        "compare-and-swap: sessions",
        "messages are added whatever was added meanwhile",
        "stores/rules.py",
        "if node.parent != head:",
        "if False:",
        "tests/contract/test_sessions.py",
    ),
    of(
        "compare-and-swap: knowledge",
        "a change is recorded whatever is held by now",
        "stores/checks.py",
        "if delta.before != held:",
        "if False:",
        "tests/contract/test_ledger.py",
    ),
    of(
        "a review once",
        "a review that has ended can be completed again",
        "stores/stages.py",
        "if job.state is not State.QUEUED:\n        raise",
        "if False:\n        raise",
        "tests/contract/test_jobs.py",
    ),
    of(
        "claim lock",
        "everybody holds the claim",
        "runtime/claims.py",
        "fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        "tests/runtime/test_claims.py",
    ),
    of(
        "lock of what is known",
        "nobody waits for it",
        DISK,
        "                    fcntl.flock(handle, fcntl.LOCK_EX)\n",
        "",
        DISK_TESTS,
    ),
    of(
        "fsync order: before the rename",
        "a file takes its place before it is on the disk",
        DISK,
        "            os.fsync(file.fileno())\n"
        "            os.replace(name, names[-1], src_dir_fd=folder, dst_dir_fd=folder)\n",
        "            os.replace(name, names[-1], src_dir_fd=folder, dst_dir_fd=folder)\n"
        "            os.fsync(file.fileno())\n",
        DISK_TESTS,
    ),
    of(
        "fsync order: the folder",
        "the new name is not on the disk when the write returns",
        DISK,
        "            os.fsync(folder)\n",
        "            pass\n",
        DISK_TESTS,
    ),
    of(
        "fsync order: acknowledged",
        "a commit returns before the log is on the disk",
        "stores/database.py",
        'connection.pragma("synchronous", "FULL")',
        'connection.pragma("synchronous", "NORMAL")',
        "tests/stores/test_order.py",
    ),
    of(
        "acknowledged is stored",
        "the turn goes on before its messages are committed",
        "stores/writer.py",
        '        finish(connection)\n        connection.execute("COMMIT")\n',
        "        finish(connection)\n",
        "tests/contract/test_sessions.py",
        "tests/stores/test_order.py",
    ),
    of(
        "path opener: folders",
        "a link on the way is followed",
        DISK,
        "return os.open(names[-1], _FOLDER | os.O_NOFOLLOW, dir_fd=here)",
        "return os.open(names[-1], _FOLDER, dir_fd=here)",
        DISK_TESTS,
    ),
    of(
        "path opener: files",
        "a link that takes the file's place is followed",
        DISK,
        "_UNFOLLOWED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC",
        "_UNFOLLOWED = os.O_NONBLOCK | os.O_CLOEXEC",
        DISK_TESTS,
    ),
    of(
        "path opener: names",
        "names like .. are taken",
        DISK,
        'return name not in ("", ".", "..") and not',
        "return not",
        DISK_TESTS,
    ),
    of(
        "home closed to file tools",
        "a file tool writes into the home",
        "tools/fenced.py",
        "if Effect.WRITE in self.surface.effects and self._is_inside(call.arguments):",
        "if False:",
        "tests/story/test_home.py",
    ),
    of(
        "Host check",
        "every name is answered to",
        DOOR,
        'if head.one("host") not in self._hosts:',
        "if False:",
        DOOR_TESTS,
    ),
    of("Origin check", "every page may ask", DOOR, "if not self._is_own(head):", "if False:", DOOR_TESTS),
    of(
        "key or cookie",
        "nobody needs a key",
        DOOR,
        "if not self._knows(scope, head):",
        "if False:",
        DOOR_TESTS,
    ),
    of(
        "cookie: no script reads it",
        "the cookie is not HttpOnly",
        DOOR,
        "httponly=True",
        "httponly=False",
        DOOR_TESTS,
    ),
    of(
        "cookie: same site",
        "the cookie goes with requests of other sites",
        DOOR,
        'samesite="strict"',
        'samesite="none"',
        DOOR_TESTS,
    ),
    of(
        "content security policy",
        "inline scripts may run",
        "web/seal.py",
        "script-src 'self';",
        "script-src 'self' 'unsafe-inline';",
        DOOR_TESTS,
    ),
    of(
        "redaction",
        "secrets stay in results",
        "tools/contained.py",
        "text=visible(self.redact(outcome.text))",
        "text=visible(outcome.text)",
        "tests/tools/test_contained.py",
    ),
    of(
        "redaction: a search that fails",
        "the result is shown although it could not be searched",
        "tools/contained.py",
        '        return Outcome(f"The call was made, but its result is withheld: {reason}.", failed=True)',
        "        return replace(outcome, text=visible(outcome.text) or reason)",
        "tests/tools/test_contained.py",
    ),
    of(
        "hidden characters",
        "results hide what they bring",
        "tools/contained.py",
        "text=visible(self.redact(outcome.text))",
        "text=self.redact(outcome.text)",
        "tests/tools/test_contained.py",
    ),
    of(
        "secrets in what is known",
        "a secret is written down",
        "knowledge/cleaning.py",
        "if secrets := set(now.secrets) - set(was.secrets):",
        "if secrets := set[str]():",
        "tests/knowledge/test_keeper.py",
    ),
    of(
        "approval: the bytes shown",
        "the page approves whatever waits by now",
        "web/api/changes.py",
        "if seen(await keeper.together(await keeper.ledger.entry(id))) != asked.body.seen:",
        "if False:",
        "tests/web/test_api.py",
    ),
    of(
        "approval: contents by digest",
        "a content that is not what its digest says is used",
        "stores/ledger.py",
        "if digest(body) != name:",
        "if False:",
        "tests/stores/test_knowledge.py",
    ),
    of(
        "approval: instructions by digest",
        "a yes holds for other bytes too",
        "runtime/instructions.py",
        "return _item(folder, found.name, found.digest) in self._seen.items()",
        "return bool(self._items(folder, found.name))",
        "tests/story/test_instructions.py",
    ),
    of(
        "sandbox: no cell, no silence",
        "where no sandbox holds, nothing is asked",
        "tools/doubts.py",
        "missing = sorted(choice.missing(network=network))",
        "missing = list[str]()",
        "tests/tools/test_shell.py",
    ),
    of(
        "sandbox: it is tried",
        "a mode is believed what it claims",
        "tools/sandbox/choice.py",
        "mode.claims - broken,",
        "mode.claims,",
        "tests/sandbox/test_choice.py",
    ),
    of(
        "addresses: public only",
        "any address is connected to",
        "models/http/addresses.py",
        "    fault = _fault(found)\n    if fault is not None:\n        return",
        "    fault = _fault(found)\n    if False:\n        return",
        "tests/faults/test_urls.py",
    ),
)
