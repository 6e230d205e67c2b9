"""Reports for CI services: GitHub, GitLab, and whatever reads JUnit XML or SARIF."""
