"""What is done to programs that are known in full: steps that are not needed are left out."""
