"""Where metadata come from, beside the frameworks: tables."""
