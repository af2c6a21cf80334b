"""What a module says, from `ast`: its scopes, what each name may stand for, its calls and limits."""
