"""Whatever was asked for before, and in whichever order, the bytes of a conversation are the same."""

from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import Message, user
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.models.endpoint import Joined
from tests.given import NOON, conversations, transcript

PREFIX = Prefix("openai/m", "system")


def link(node: Node, before: Node | None) -> bytes:
    """As a wire format does: what a node looks like depends on the one before it."""
    return (before.digest.encode() if before else b"first") + b">" + node.encoded


def plain(chain: Transcript) -> bytes:
    return b"".join(map(link, chain.nodes, (None, *chain.nodes)))


@given(conversations(), st.data())
def test_a_conversation_and_its_forks_have_the_bytes_of_their_own_messages(
    messages: list[Message], data: st.DataObject
) -> None:
    joined, chain = Joined(), transcript(PREFIX, messages)
    for count in data.draw(st.lists(st.integers(0, len(messages)), max_size=8)):
        parent = chain.upto(count)
        fork = parent.forked().then(data.draw(st.sampled_from(messages)), Trust.AGENT, NOON)
        for one in data.draw(st.permutations([parent, fork])):
            assert joined.join(one.nodes, link, one.shared) == plain(one)


def test_a_message_is_encoded_once_also_where_forks_come_between() -> None:
    encoded: list[Node] = []

    def note(node: Node, before: Node | None) -> bytes:
        encoded.append(node)
        return link(node, before)

    joined, chain = Joined(), Transcript(PREFIX.digest)
    forks: list[Node] = []
    for number in range(5):
        chain = chain.then(user(f"message {number}"), Trust.OWNER, NOON)
        joined.join(chain.nodes, note)
        fork = chain.forked().then(user("a question aside"), Trust.AGENT, NOON)
        joined.join(fork.nodes, note, fork.shared)
        forks.append(fork.nodes[-1])
    assert encoded == [node for pair in zip(chain.nodes, forks, strict=True) for node in pair]
