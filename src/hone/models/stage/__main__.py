"""Start the fake provider under its former name."""

from hone.models.fake_provider.__main__ import main

if __name__ == "__main__":
    main()
