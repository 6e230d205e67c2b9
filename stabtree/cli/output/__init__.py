"""Where the commands deliver: screens, files, pictures, reports beside a table."""
