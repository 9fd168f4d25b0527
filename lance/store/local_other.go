//go:build !unix

package store

// syncDir does nothing where directories cannot be synced.
func syncDir(string) error { return nil }

func linked(string) bool { return false }

func linkUnsupported(error) bool { return true }
