"""The command line, `icebench`: one file a command. Commands read files and print; what they know comes from below."""
