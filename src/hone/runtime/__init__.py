"""Run sessions, with the models, tools, permissions and triggers that they need."""
