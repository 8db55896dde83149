"""Adapters of the store's port: `dynamo` over PynamoDB, `memory` as its twin; importing this package loads neither."""
