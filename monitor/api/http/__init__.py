"""What the API resources share: authentication, problem answers, request bodies and common parameters."""
