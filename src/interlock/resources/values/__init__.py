"""Value types: how single texts and numbers are read, checked and written."""
