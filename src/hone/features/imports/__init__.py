"""Import the conversations of other agents, learn from them, and bring over what they were taught.

- ImportPlan: what an import would add, shown before anything is stored.
- ImportProposal: what another agent had learned, as a change that waits for the owner.
- ImportReport: what could not be imported, by kind, and which lines could not be read.
- LearnedSource: an agent's folder that Hone learns from: whose words it holds, and which files were read.
- LookPlan: decides when to look back over an imported conversation.
- RawMessage: a message of another agent before it is fit to be stored.
- RuleProposal, ServerProposal: a permission rule or an MCP server of another agent, before it is approved.
- SourceFile: a file of another agent with conversations in it.
- Trail: as much of a transcript as is needed to compare it.
"""
