"""Where memos are kept: nowhere, in a file, in a database server, with a service."""
