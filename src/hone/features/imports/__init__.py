"""Import the conversations of other agents: a module for each format, and what they have in common.

- ImportPlan: what an import would add, shown before anything is stored.
- ImportProposal: what another agent had learned, as a change that waits for the owner.
- ImportReport: what could not be imported, by kind, and which lines could not be read.
- RawMessage: a message of another agent before it is fit to be stored.
- SourceFile: a file of another agent with conversations in it.
- Trail: as much of a transcript as is needed to compare it.
"""
