"""Run sessions with the models, tools, permissions and triggers they need."""
