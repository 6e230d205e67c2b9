"""Reports for CI services: GitHub, and whatever reads JUnit XML or SARIF."""
