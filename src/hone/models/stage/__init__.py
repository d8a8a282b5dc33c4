"""The former name of `hone.models.fake_provider`, kept for `python -m hone.models.stage`."""
