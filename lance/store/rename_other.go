//go:build !linux

package store

func renameNoReplace(string, string) error { return errNoAtomicPublish }
