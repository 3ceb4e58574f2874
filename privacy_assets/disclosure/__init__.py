"""What single columns disclose: values that leave as they are, values that few people have."""
