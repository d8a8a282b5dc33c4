"""What happens, in order: sessions and what goes on around them."""
