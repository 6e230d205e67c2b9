"""The documentation: its pages, and in `docs.site` what is written of trees and code."""
