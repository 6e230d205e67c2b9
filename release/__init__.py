"""What a maintainer runs: a release in one command, wheel and sdist checked, the licences of what is shipped."""
