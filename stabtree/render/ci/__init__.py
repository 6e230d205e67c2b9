"""The report for services that run checks: GitHub, GitLab, whatever reads JUnit XML or SARIF."""
