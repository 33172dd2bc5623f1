"""The languages: what an author writes becomes programs and launches here."""
