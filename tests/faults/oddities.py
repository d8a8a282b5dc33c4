"""Tables of what no model and no provider should say: odd texts, ids, names, arguments, values and events."""

from typing import Any

DEPTH = 100_000
DEEP = "[" * DEPTH + "]" * DEPTH
DEEP_MARK = "deep-deep-deep"
"""Stands for DEEP in a value, since nobody can encode that."""

# fmt: off
TEXTS = [
    "", " ", "\n", "Hello.", "ü — 😀", "\ud800", "a\udfffb", "\x00\x1b[31m", "x" * 5000, "\u202e\u2066",
    "null",
]
IDS = [
    "", "a", "a", "call_1_0", "call_0_0", "call_3_1", "x" * 40, "x" * 41, "x" * 64, "x" * 65, "é", "a b",
    "\n", "..", "toolu_01", '"', "\ud83d", "0", "null", "a\x00", "-", "_" * 200,
]
NAMES = [
    "read_file", "todo", "look", "change", "", " ", "read file", "read_file\n", "😀", "x" * 64, "x" * 65,
    "x" * 500, "\ud800", "functions.read_file", "read_file" * 2, "READ_FILE", "None", '"}', "-", "look.",
]
ARGUMENTS = [
    "", " ", "{}", "{ }", "null", "true", "[]", "0", '"text"', "{", "}", '{"path"', '{"path":', '{"path":"a',
    '{"path":"a"', '{"path":"a"}}', '{"path":"a"}{"path":"b"}', "{'path':'a'}", '{path:"a"}', '{"path":"a",}',
    '{"path":NaN}', '{"path":Infinity}', '{"path":1e999}', '{"path":-0}', '{"path":1e308}', '{"path":01}',
    '{"path":"\\ud800"}', '{"path":"\\udc00\\ud800"}', '{"path":"\ud800"}', '{"\ud800":1}',
    '{"path":"\\u00"}',
    '{"path":"a\nb"}', '{"path":"\x00"}', '{"path":"\\u0000"}', "\ufeff{}", "\u00a0{}", "{}\u2028",
    "// no\n{}",
    '{"path":[]}', '{"path":{}}', '{"path":null}', '{"path":5}', '{"path":true}', '{"other":1}', '{"":""}',
    '{"path":"a","path":"b"}', '{"path":"a","offset":-1}', '{"path":"a","offset":1e3}', "```json\n{}\n```",
    '{"path":"a","offset":99999999999999999999999}', '{"path":' + "9" * 5000 + "}", "<function>{}</function>",
    '{"path":' + DEEP + "}", DEEP, '{"a":' * DEPTH, '{"path":' + "[" * 300 + "]" * 300 + "}",
    '{"a":' * 950 + "1" + "}" * 950, '{"a":' * 480 + "1" + "}" * 480, '{"path":"' + "x" * 100_000 + '"}',
]
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, -(10**30), 1.5, -0.0,
    1e308,
    float("nan"), float("inf"), "", "text", "\ud800", "x" * 3000, [], [[]], [None], {}, {"": None}, {"a": {}},
    ["a", 1], [{}], {"type": "text"}, {"index": -1}, "0", "null", "[DONE]", DEEP_MARK,
]
_DATA = [
    b"[DONE]", b"", b"null", b"[]", b"{}", b"5", b'"text"', b"{", b"\xc3", b"NaN", DEEP.encode(),
    b'{"error":null}', b'{"error":{}}', b'{"error":"no"}', b'{"error":[1]}', b'{"error":"\xff"}',
    b'{"error":{"code":429,"message":"slow\\ndown"}}', b'{"error":{"code":401}}',
    b'{"error":{"code":%d,"message":null}}' % 10**25, b'{"error":' + DEEP.encode() + b"}",
    b'{"type":"error","error":{"type":"overloaded_error","message":"\\u001b[2J"}}',
    b'{"type":"content_block_start","index":-5,"content_block":{"type":"tool_use","input":5}}',
    b'{"type":"content_block_start","index":7,"content_block":{"type":"server_tool_use","id":"s"}}',
    b'{"type":"content_block_start","index":9,"content_block":{"type":"redacted_thinking","data":"z"}}',
    b'{"type":"content_block_start","index":9,"content_block":{"type":"thinking","signature":"z"}}',
    b'{"type":"content_block_delta","index":77,"delta":{"type":"text_delta","text":"lost"}}',
    b'{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"path":"a"}}}]}}]}',
    b'{"choices":[{"delta":{"tool_calls":[{"index":-3,"id":"n"}]},"finish_reason":"tool_calls"}]}',
    b'{"choices":[{"message":{"content":"whole","refusal":"no"}}]}', b'{"choices":[]}',
    b'{"usage":{"prompt_tokens":%d,"completion_tokens":-7,"cost":-1}}' % 10**40,
]
EVENTS = [
    b": a comment\n\n", b"event: ping\ndata: {}\n\n", b"data:\n\n", b"\n\n\n", b"id: 1\nretry: 3\n\n",
    b"data", b"data: {}\ndata: {}\n\n", b"\r\n\r\n", b"event: error\n\n", b"\xff\xfe\n\n",
    *(b"data: %s\n\n" % data for data in _DATA),
]
# fmt: on
