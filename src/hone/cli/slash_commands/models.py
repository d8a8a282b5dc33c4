"""`/model`: choose a model from a list, or by name."""

from hone.cli.models import look
from hone.cli.output import number_of
from hone.cli.slash import ChatState, SlashMenu, SlashResult
from hone.core.errors import Refused
from hone.core.visible import visible
from hone.runtime.offers import ModelOffer


async def switch(state: ChatState, name: str) -> SlashResult:
    return await use(state, name) if name else await offer(state)


async def use(state: ChatState, name: str) -> str:
    """Continue the conversation with another model."""
    session, hone = state.session, state.hone
    known = len(hone.notices)
    if len(session.transcript):
        state.session = await hone.resume(session.id, name)
    else:
        opening = session.opening
        state.session = await hone.session(name, opening.wanted if opening else "")
    state.session.set_mode(session.mode)
    model = state.session.agent.prefix.model
    hone.notices[known:] = [each for each in hone.notices[known:] if model not in each]
    return f"This conversation now uses {visible(model)}."


async def offer(state: ChatState) -> SlashResult:
    current = state.session.agent.prefix.model
    found = await look(state.hone)
    names = list(dict.fromkeys((current, *(each.name for each in found.usable))))
    if len(names) < 2:  # nothing to choose from
        raise Refused(f"This conversation uses {current}. No other model can be used now; see: hone models")
    known = {each.name: each for each in found.usable}
    widest = max(map(len, names))
    rows = [f"{visible(name).ljust(widest)}  {_about(known.get(name), name == current)}" for name in names]

    async def then(number: int) -> SlashResult:
        return await use(state, names[number])

    return SlashMenu("Which model?", rows, then)


def _about(offer: ModelOffer | None, current: bool) -> str:
    facts = [number_of(offer.window, "token")] if offer else []
    if offer and offer.price:
        facts.append(f"${offer.price.input:g} in, ${offer.price.output:g} out per million")
    return ", ".join((*facts, "in use") if current else facts)
