"""The models of Coleman and Shrivastava, CCS 2021, run again on public data with exact integer noise."""
