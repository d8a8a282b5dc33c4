"""Lessons for the leak check: 200 with something planted in each, and 200 that tell nothing about anybody."""

from collections.abc import Iterator, Sequence

from msgspec import Struct


class Planted(Struct, frozen=True):
    """A lesson, and what must be shown of it. A secret is shown by its kind, never by its words."""

    kind: str
    leak: str
    text: str


NAMES = (
    """
Thandiwe Nkosi|Marta Kowalska|Jean-Luc Moreau|Siobhán O'Brien|Rajeshwari Iyer|Tomasz Zieliński
Olumide Adeyemi|Yuki Tanaka
Giuseppe Ricci|Hannelore Vogt|Ingeborg Dahl|Mehmet Yıldız|Nguyen Thi Hoa|Fatoumata Diallo
Björn Åkesson|Keoni Kahale
Zsófia Nagy|Dmitri Volkov|Aroha Ngata|Wilhelmina de Vries|Esperanza Quiroga
Lachlan McAllister|Priyanka Deshmukh|Babatunde Okafor
Sinead|Oluwaseun|Grzegorz|Katarzyna|Hyun-woo|Mireille|Anselm|Tadeusz|Ottoline|Xochitl|Bartholomew|Noor
Frau Schneider|Mr. Whitcombe|Dr. Abernathy|田中さん|Herr Oberhauser|Mme Lefèvre|Ms Harcourt|Prof. Lindqvist
marta|thomas|Vasquez|Kaplan-Weiss|Ruth|Emeka|Guðrún|Niamh|Håkon|Zainab
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

WITH_NAMES = (
    "Ask {} before you touch the billing tables.",
    "Release notes go to {} for a last look.",
    "Migrations are reviewed by {} on Mondays.",
    "The staging password rotation is done by {} every month.",
    "Do not page the on-call for this; tell {} instead.",
    "Use the layout from the dashboard, since {} wants it that way.",
    "{} owns the deploy script, so open a ticket there first.",
    "When the cache is cold, check with {} whether a warm-up is due.",
)

PATHS = (
    """
/home/mkowalska/work/ledger|/Users/tomasz/Projects/acme-api|~/notes/customers.md|C:\\Users\\Ingrid\\Desktop\\plan.xlsx
$HOME/.config/acme/settings.toml|/srv/acme/prod/releases|/mnt/finance/2026/q3.csv|\\\\fileserver\\hr\\reviews
/opt/acme/bin/deploy|/var/lib/acme/customers.db|~tomasz/bin/fix-db|/data/clients/northwind/export
D:\\Clients\\Contoso\\backup|/home/ci/agent-7/workspace|/root/restore.sh|/Volumes/Backup/thesis
%USERPROFILE%\\acme\\keys|/etc/acme/billing.conf|/private/tmp/acme-dump|/workspace/acme/secret-project
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

WITH_PATHS = (
    "Run the linter from {} before each commit.",
    "The generated client lies in {}, never edit it by hand.",
    "Copy the fixtures to {} when the tests complain.",
)

HOSTS = (
    """
db-prod-3.internal|https://wiki.acme.corp/runbooks|10.20.30.41|grafana.acme.io|https://jira.northwind-traders.com/browse/ABC-1
192.168.17.0/24|ssh://git@code.acme.lan/billing|bastion-2:2222|fd12:3456:789a::17|redis-cache-01:6379
s3.eu-central-1.amazonaws.com|https://acme.slack.com/archives/C01|vpn.acme-holding.de|build-07|http://172.16.4.9:8080/admin
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

WITH_HOSTS = (
    "The nightly job talks to {} and needs ten minutes.",
    "Point the tests at {} when the sandbox is down.",
)

ADDRESSES = (
    """
marta.kowalska@acme.example.co|ops+pager@northwind.io|@mkowalska|+49 30 1234567|(0221) 555-0199|tomasz@acme
DE89 3704 0044 0532 0130 00|4111 1111 1111 1111|+1 415 555 0132|@tomasz-z
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

WITH_ADDRESSES = (
    "Send the weekly summary to {} on Friday.",
    "If the import fails twice, write to {} and stop.",
)

PRIVATE = (
    """
salary|pregnant|divorce|diabetic|chemotherapy|wheelchair|daughter|laid off|performance review
birthday|lives in|therapist
union member|mortgage|my kids|sick leave|transgender|mosque|resigned|burnout
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

WITH_PRIVATE = ("Plan the sprint around this: {}, so no calls after four.",)

SECRETS = (
    "AKIAIOSFODNN7EXAMPLQ",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "password: Tr0ub4dor&3xkcd",
    "sk-proj-4f9d8a7b6c5e4d3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d",
    "postgres://billing:S3cr3tPw99@db/ledger",
    "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
    "glpat-x9Y8z7W6v5U4t3S2r1Qp",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
    "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "api_key=9f86d081884c7d659a2feaa0c55ad015",
    "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
)

WITH_SECRETS = ("Log in to the report tool with {} when it asks.", "The nightly export uses {} for now.")


def _mix(kind: str, leaks: Sequence[str], templates: Sequence[str], count: int) -> Iterator[Planted]:
    """Each leak in each of the sentences, at most once."""
    for number in range(count):
        turn, at = divmod(number, len(leaks))
        yield Planted(kind, leaks[at], templates[(turn + at) % len(templates)].format(leaks[at]))


PLANTED = (
    *_mix("name", NAMES, WITH_NAMES, 72),
    *_mix("path", PATHS, WITH_PATHS, 40),
    *_mix("host", HOSTS, WITH_HOSTS, 28),
    *_mix("address", ADDRESSES, WITH_ADDRESSES, 20),
    *_mix("private", PRIVATE, WITH_PRIVATE, 20),
    *_mix("secret", SECRETS, WITH_SECRETS, 20),
)

HARMLESS = tuple(
    line
    for line in """
Run the linter before each commit.
Deploys freeze on Fridays at noon.
Use snake_case for Python functions and PascalCase for classes.
Prefer pytest fixtures over setup methods.
Keep functions under 40 lines.
Write commit messages in the imperative mood.
Never push to the main branch without a review.
Squash fixup commits before a merge.
The API returns JSON with ISO 8601 timestamps.
Migrations must be reversible.
Feature flags live for at most two sprints.
Add a test for every bug that you fix.
Use Docker Compose for local services.
Staging runs on Kubernetes with three replicas.
The CI pipeline caches node modules by lockfile hash.
Do not log request bodies.
Use UTC everywhere and convert at the edge.
Answer in short sentences.
Prefer composition to inheritance.
Validate input at the boundary and trust it inside.
All public functions need type hints.
Run `make check` before you open a pull request.
Use `git rebase -i` to clean up a branch.
Terraform plans are posted as a comment on the pull request.
Release notes have one line per change.
Retry idempotent requests with exponential backoff.
Set a timeout on every network call.
The default page size is 50.
Prices are stored in cents as integers.
Do not use floats for money.
Sort imports with Ruff.
Use Prettier with a print width of 100.
Markdown tables are fine in docs, but not in chat.
Keep the README short and link to the guide.
PostgreSQL 15 is the minimum version.
Use advisory locks for cron jobs that must not overlap.
Redis is a cache here, never a source of truth.
Write SQL keywords in upper case.
Index foreign keys that you filter by.
Use EXPLAIN ANALYZE before you add an index.
Batch inserts in groups of 500.
Prefer `pathlib` to `os.path`.
Do not catch bare exceptions.
Raise errors that say what to do next.
Use structured logging with a request id.
Feature branches are named feature/short-topic.
Tag releases with semantic versions.
The changelog follows Keep a Changelog.
Bump the version only in a release commit.
Screenshots belong in the docs folder.
Use ARIA labels for icon buttons.
Color contrast must reach WCAG AA.
Test the page with the keyboard alone.
Do not disable the zoom on mobile.
Lazy-load images below the fold.
Keep bundle size under 200 kB gzipped.
Use server-sent events instead of polling.
Rate limits are 100 requests per minute for each key.
Return 404, not 403, for resources of other tenants.
Use parameterized queries, never string formatting.
Secrets come from the vault, never from the repository.
Rotate credentials every 90 days.
Sign container images in the release job.
Pin actions by commit hash in GitHub workflows.
Run integration tests against a real database.
Mock only what you do not own.
Flaky tests are fixed or deleted within a week.
Use Hypothesis for parsers and encoders.
Golden files are renewed with a script, not by hand.
Each test has its own temporary folder.
Do not sleep in tests; wait for a condition.
Benchmarks run on the nightly build only.
Profile before you optimize.
Cache invalidation happens on write.
Use weak references for observers.
Close files with a context manager.
Use async generators for streaming responses.
Cancel child tasks when the parent ends.
A process must exit within five seconds after SIGTERM.
Health checks do not touch the database.
Ready means that migrations have run.
Alert on symptoms, not on causes.
Every alert links to a runbook.
Postmortems are blameless.
Write the test plan into the ticket.
Estimate in days, not in points.
Standup is at ten and lasts ten minutes.
Documentation uses American English.
Explain the why in comments, not the what.
Use two spaces in YAML and four in Python.
Tabs are for Go and Makefiles.
End every file with a newline.
No trailing whitespace in Markdown.
Use Conventional Commits for the scope of a change.
The monorepo uses pnpm workspaces.
Run `npm ci`, not `npm install`, in CI.
Keep lockfiles in version control.
Upgrade dependencies on Mondays, in their own pull request.
Do not vendor libraries without a license file.
React components are functions, never classes.
Keep state as close to its use as possible.
Use React Query for server state.
Avoid effects that only set state.
Vue templates use kebab-case for events.
CSS classes follow BEM.
Use CSS grid for page layout and flexbox for rows.
Dates are shown in the locale of the user.
Use the Intl API for numbers and currencies.
Translate whole sentences, not fragments.
Error messages tell the user what to do next.
Prefer native elements over custom widgets.
Forms keep their input after an error.
Use Swift concurrency instead of callbacks on iOS.
Kotlin data classes are immutable here.
Use Gradle version catalogs.
Rust code must pass Clippy without warnings.
Use `thiserror` in libraries and `anyhow` in binaries.
Go errors are wrapped with %w.
Return early instead of nesting.
Use table-driven tests in Go.
C++ code follows the Google style guide.
Build with CMake and Ninja.
Shell scripts start with set -euo pipefail.
Quote variables in Bash.
Check scripts with ShellCheck.
Use Ansible roles for servers.
Helm charts have a values schema.
Container images run as a non-root user.
Use multi-stage Dockerfiles.
Do not use the latest tag in production.
Resources have requests and limits.
Back up the database before a major upgrade.
Restore drills happen every quarter.
Logs are kept for 30 days.
Metrics use the Prometheus naming rules.
Dashboards show rate, errors and duration.
Traces are sampled at one percent.
Kafka topics have at least three partitions.
Consumers must be idempotent.
Use Avro schemas with backward compatibility.
Dead letters are checked daily.
Airflow tasks do one thing each.
Notebooks are cleared before a commit.
Pandas code avoids chained assignment.
Use Polars for files above one gigabyte.
Set a random seed in experiments.
Report confidence intervals, not only means.
Split data by time, not at random.
Keep training and serving features in one place.
Models are versioned together with their data.
Do not train on the test set.
Prompts are kept in files, one per task.
Ask one question at a time.
Show the command before its output.
Give the short answer first, then the reasons.
Use bullet points for more than three items.
No emoji in commit messages.
Code examples must run as they are.
Link to the official documentation at https://docs.python.org/3/library/asyncio.html.
Do not paste long logs into tickets.
Use English in code and German in the interface.
Round percentages to one decimal.
Week numbers follow ISO.
Invoices are numbered without gaps.
Tax is computed per line and then summed.
Emails to customers are plain text.
Reply to support tickets within one business day.
Archive closed projects after a year.
Use a feature flag for risky changes.
Roll out to five percent first.
Roll back first and debug later.
Write down assumptions before you start.
Delete dead code instead of commenting it out.
Keep pull requests under 400 lines.
Reviewers answer within a day.
Two approvals are needed for security changes.
Draft pull requests are not reviewed.
Use GitHub Discussions for proposals.
Architecture decisions are recorded as ADRs.
Diagrams are written in Mermaid.
Use the debugger instead of print statements.
Name booleans with is or has.
Constants are upper case.
Avoid abbreviations in names.
Enums beat string constants.
Prefer dataclasses to dictionaries.
Use msgspec for JSON at the edges.
HTTP clients share one connection pool.
Use /health for liveness and /ready for readiness.
The app listens on localhost:8080 by default.
Write temporary files below /tmp and remove them.
Send errors to /dev/null only in cron.
Use `curl -fsS` in scripts.
Check the exit code of every command.
Parent processes reap their child processes.
The parser raises an error on duplicate keys.
Trees are walked from the root to the leaves.
Sister projects share the same release train.
A hook is fired after each save.
Use the family of sans fonts in headings.
""".strip().split("\n")
)
