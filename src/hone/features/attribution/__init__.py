"""Say which lessons shaped an answer: by record, by measure, by the model's own word, and by ablation.

- Ablation: the same turn again, with everything the model was given except one item.
- Agreement: how much of an answer and of the actions before it came out again, from 0 to 1.
- Citation: what the model names when it is asked which items it relied on.
- Item: one piece of what is known that was in the prompt of an answer: an entry of the journal, a skill, a
  template, a memory, or the trusted instructions of a folder.
- Trait: what anybody can see of an answer's form, such as its language or that it has a table.
"""
