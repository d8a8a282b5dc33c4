"""The page for a browser that is not signed in: the form for a password or key, or how to get a link."""

from html import escape

STYLE_PATH = "/login.css"
USED = "This link has been used already, or is older than an hour."
WRONG = "That is not the password."
WRONG_KEY = "That key is not valid here. Ask the person who gave it to you for a new one."
PROGRAM = "That key is for a program. A browser needs the key of a person: hone users key NAME --for person"
LOCKED = "There were too many wrong passwords. Try again in a minute."
LINK = (
    "To get a link that signs this browser in, run <code>hone serve link</code> where Hone runs, or open "
    "Access under More in a browser that is signed in."
)
OWN_KEY = (
    "Your key is what <code>hone users add</code> printed for you. A link signs a browser in, too: open "
    "Access under More in a browser that is signed in, or run <code>hone serve link</code> where Hone runs."
)
FORM = """<form method="post" action="/login"><label for="password">{label}</label>
<input id="password" name="password" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Sign in</button></form>"""
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="referrer" content="same-origin">
<title>Sign in \u00b7 Hone</title><link rel="stylesheet" href="/login.css"></head>
<body><main><h1>Sign in to Hone</h1>{why}{form}<p>{link}</p></main></body></html>"""
STYLE = """:root { color-scheme: light dark; }
:root { --ink: #22262b; --back: #f8f6f2; --line: #8a8f98; --main: #1d6b63; }
@media (prefers-color-scheme: dark) {
:root { --ink: #e4e7ea; --back: #14171a; --line: #8a8f98; --main: #6fc6b9; } }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 24rem; margin: 12vh auto; padding: 0 1.25rem; }
h1 { font-size: 1.4rem; }
.why { border-left: 3px solid var(--main); padding-left: .75rem; }
form { display: grid; gap: .5rem; margin: 1.25rem 0; }
input, button { font: inherit; padding: .55rem .7rem; border-radius: 8px; border: 1px solid var(--line); }
input { background: transparent; color: inherit; }
button { background: var(--main); color: var(--back); border-color: var(--main); cursor: pointer; }
:focus-visible { outline: 2px solid var(--main); outline-offset: 2px; }
"""


def write(why: str, *, password: bool = False, key: bool = False) -> str:
    """Return the page. `why` is the reason for the refusal. It asks for whatever lets somebody in: the
    server's `password`, the `key` of a user, or either."""
    told = f'<p class="why" role="alert">{escape(why)}</p>' if why else ""
    label = " or ".join(["Password"] * password + ["Key"] * key).capitalize()
    return PAGE.format(
        why=told, form=FORM.format(label=label) if label else "", link=OWN_KEY if key else LINK
    )
