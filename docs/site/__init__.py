"""The site: `python -m docs.site FOLDER` lays out its pages and builds it; each kind of made page is a module here."""
