"""Amazon EC2. This file imports nothing, so that `notices` can be read without the SDK."""
