"""Random call sequences against an oracle."""
