"""The suites of faults and attacks by name: what each tries, and which tests do it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    about: str
    """What is tried, for a list."""
    tests: tuple[str, ...]


POINTS = "tests/faults/test_points.py"
SUITES = (
    Suite(
        "kills",
        "processes killed with SIGKILL at each write of seventeen pieces of work",
        (f"{POINTS}::test_killed_at_any_write_it_is_there_once_and_whole",),
    ),
    Suite(
        "errors",
        "the same work while the disk refuses a call: no space, I/O errors, no rights",
        (f"{POINTS}::test_refused_by_the_disk_at_any_call_it_says_so_and_nothing_is_half_done",),
    ),
    Suite(
        "power",
        "power cuts at any write of seventeen pieces of work: unsynced writes dropped, reordered and torn",
        ("tests/faults/test_power.py::test_after_a_power_cut_all_that_was_acknowledged_is_there",),
    ),
    Suite(
        "rewinds",
        "edits by tools, commands and the user, with rewinds in between",
        (
            "tests/features/test_rewind.py::test_a_rewind_takes_back_what_tools_did_and_nothing_else",
            "tests/story/test_cli_rewind.py::test_what_commands_do_in_the_sandbox_is_taken_back",
        ),
    ),
    Suite(
        "leaving",
        "chats and runs that are left, killed or hung up on; the process that stays behind killed or stopped",
        (
            "tests/faults/test_left.py::test_however_the_owner_leaves_the_lesson_is_learned_once_and_nobody_stays",
        ),
    ),
    Suite(
        "editors",
        "saves of old buffers raced by reviews, readers and undos, at each step of three ways to save",
        ("tests/faults/test_editors.py",),
    ),
    Suite(
        "backups",
        "backups while four processes work, each restored; backups that were cut or changed",
        (
            "tests/faults/test_backups.py",
            "tests/features/test_backups.py::test_a_backup_that_was_cut_or_changed_anywhere_is_noticed",
        ),
    ),
    Suite("pages", "pages of the database that hold live data, damaged", ("tests/stores/test_damage.py",)),
    Suite(
        "soak",
        "200 conversations over 4 processes on one home for 3 minutes, processes killed and started again",
        ("tests/faults/test_soak.py",),
    ),
    Suite(
        "poisoning",
        "a model that obeys injected text, in 7 ways through 13 channels, and a curator that does",
        (
            "tests/story/test_poisoning.py",
            "tests/story/test_poisoned_folder.py",
            "tests/knowledge/test_admission.py::test_no_poison_becomes_active_in_any_of_seven_ways",
        ),
    ),
    Suite(
        "permits",
        "forbidden calls of a review, alone and in a mixed batch",
        ("tests/wire/test_fork.py",),
    ),
    Suite(
        "places",
        "59 places that run by themselves, 16 secrets and Hone's home, by tool and by command, in each mode",
        ("tests/runtime/permissions/test_places.py",),
    ),
    Suite(
        "races",
        "writes raced by a folder that turns into a link",
        (
            "tests/knowledge/test_disk.py::test_of_10_000_writes_raced_by_a_folder_that_turns_into_a_link_none_lands_outside",
        ),
    ),
    Suite(
        "names",
        "names and paths that lead elsewhere, over every deed",
        (
            "tests/knowledge/test_disk.py::test_of_20_000_names_over_every_deed_none_leads_outside_and_none_raises_anything_else",
            "tests/skills/test_paths.py::test_of_20_000_nasty_paths_none_gets_by_and_none_raises_anything_else",
        ),
    ),
    Suite(
        "secrets",
        "shapes of secrets",
        ("tests/core/test_screen.py::test_every_shape_of_a_secret_is_found",),
    ),
    Suite(
        "redaction",
        "secrets by whole file, slice, match, diff, command and error, in store, prompt, export and page",
        (
            "tests/core/test_secret_pieces.py::test_pieces_of_a_key_without_head_and_foot_are_recognized",
            "tests/story/test_secrets.py",
        ),
    ),
    Suite(
        "hidden",
        "characters that hide or steer, to the screen, the canonical form and the prompt",
        (
            "tests/core/test_screen.py::test_every_hidden_character_is_shown_and_flagged",
            "tests/core/test_visible.py::test_no_hidden_code_point_gets_through_alone_inside_words_or_at_their_ends",
            "tests/prompt/test_sections.py::test_no_hidden_character_gets_in_through_any_section",
        ),
    ),
    Suite("xss", "stored texts that would run as markup, on every page", ("tests/browser/test_xss.py",)),
    Suite(
        "door",
        "strangers, foreign pages and wrong hosts on every route of the server",
        (
            "tests/web/test_door.py::test_no_route_but_health_answers_a_stranger_a_foreign_page_or_a_wrong_host",
        ),
    ),
    Suite(
        "requests",
        "requests that two readers understand differently, and requests that are never finished",
        ("tests/web/test_http.py",),
    ),
    Suite(
        "keys",
        "what a program's key reaches, says and teaches",
        ("tests/web/test_keys.py",),
    ),
    Suite(
        "urls",
        "URLs that lead to addresses which are not public",
        ("tests/faults/test_urls.py",),
    ),
    Suite(
        "sandbox",
        "ways out of the sandbox, and payloads in arguments and paths",
        (
            "tests/sandbox/test_probes.py::test_no_probe_gets_out",
            "tests/sandbox/test_injection.py::test_a_payload_in_any_argument_runs_nothing",
            "tests/sandbox/test_injection.py::test_a_payload_in_the_paths_of_a_cell_runs_nothing_and_gives_nothing",
        ),
    ),
    Suite(
        "dangers",
        "dangerous commands, hidden in many ways, and ordinary ones that must not ask",
        (
            "tests/runtime/test_danger.py::test_no_evasion_that_the_docs_claim_is_missed",
            "tests/runtime/test_danger.py::test_no_way_of_writing_a_command_changes_what_is_said_about_it",
            "tests/runtime/test_commands.py::test_bash_runs_nothing_in_plain_lines_but_the_words_that_were_read",
        ),
    ),
    Suite(
        "providers",
        "faults of a provider, at the first and the second call",
        (
            "tests/faults/test_providers.py::test_every_provider_fault_ends_in_an_answer_or_one_plain_sentence",
            "tests/faults/test_disorder.py::test_disorder_ends_within_its_bounds_and_leaves_a_valid_history",
        ),
    ),
    Suite(
        "floods",
        "endless replies that take 100 MB or more",
        ("tests/faults/test_memory.py",),
    ),
    Suite(
        "malformed",
        "malformed outputs of a model, and streams cut at a byte",
        ("tests/faults/test_fuzz.py",),
    ),
    Suite(
        "imports",
        "broken transcripts and databases of other agents",
        (
            "tests/features/test_imports.py::test_no_broken_file_raises_and_what_is_read_of_it_is_fit",
            "tests/features/test_imports.py::test_no_broken_database_raises_anything_but_a_sentence",
        ),
    ),
)
NAMES = {suite.name: suite for suite in SUITES}
